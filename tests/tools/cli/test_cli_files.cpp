// What the program reads and writes: nothing that is read is ever replaced, and a saved run finds
// its data again.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/idx_folder.h"
#include "tests/support/program.h"

namespace tritgrad::test::test_cli_files {
namespace {

using Json = nlohmann::json;

// Two classes, of which the first column knows and the second does not.
std::string table(const char* header) {
  std::string text = header;
  for (int i = 0; i < 40; ++i) {
    text += std::to_string(i % 2) + "," + std::to_string(i) + "," + std::to_string(i % 2) + "\n";
  }
  return text;
}

std::string hash_of(const Result& result) {
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out)["weights_sha256"];
}

const std::string kSmall = " --model mlp:4 --epochs 2 ";

TEST_CASE("cli files: a saved run goes on with its data in another place, and with no others") {
  const TempDir folder;
  const std::string data = folder.write("t.csv", table("a,b,y\n"));
  const std::string checkpoint = folder / "m.safetensors";
  const std::string train = "train --data " + data + kSmall + "--json - ";
  const std::string whole = hash_of(run(train));
  REQUIRE(run(train + "--stop-after 1 --save " + checkpoint).exit_code == 0);
  const std::string moved = folder / "moved.csv";
  std::filesystem::rename(data, moved);
  check_refused("train --resume " + checkpoint, "t.csv");
  const std::string others = folder.write("others.csv", table("a,b,y\n") + "1,1,1\n");
  check_refused("train --resume " + checkpoint + " --data " + others, "have changed");
  CHECK(hash_of(run("train --resume " + checkpoint + " --json - --data " + moved)) == whole);
  // There is nothing left to train, and the copy is made all the same.
  const std::string copy = folder / "copy.safetensors";
  CHECK(hash_of(run("train --json - --resume " + checkpoint + " --save " + copy)) == whole);
  CHECK(hash_of(run("train --json - --resume " + copy)) == whole);
}

TEST_CASE("cli files: columns are found by name, others than the model's are warned of") {
  const TempDir folder;
  const std::string data = folder.write("t.csv", table("a,b,y\n"));
  const std::string checkpoint = folder / "m.safetensors";
  REQUIRE(run("train --quiet --data " + data + kSmall + "--save " + checkpoint).exit_code == 0);
  const auto scored = [&](const std::string& name, const std::string& text) {
    const Result result =
        run("eval " + checkpoint + " --json - --data " + folder.write(name, text));
    CAPTURE(result.err);
    REQUIRE(result.exit_code == 0);
    return std::pair(Json::parse(result.out)["test_accuracy"], result.err);
  };
  const auto all = scored("all.csv", table("a,b,y\n") + "0,3,0\n");
  CHECK(all.second.empty());
  // The label is found by its name, too, and columns that the model does not know do no harm.
  std::string moved = "new,y,b,a\n";
  for (int i = 0; i < 40; ++i) {
    moved +=
        "x," + std::to_string(i % 2) + "," + std::to_string(i) + "," + std::to_string(i % 2) + "\n";
  }
  CHECK(scored("moved.csv", moved + "x,0,3,0\n") == all);
  // Other names may be other words for the same.
  const auto renamed = scored("n.csv", table("c,d,y\n") + "0,3,0\n");
  CHECK(renamed.first == all.first);
  CHECK(contains(renamed.second,
                 "n.csv: its columns have other names than the model's (a, b) and are taken in the "
                 "order in which they stand, with 'y' as the label"));
  check_refused("eval " + checkpoint + " --data " + folder.write("m.csv", table("a,c,y\n")),
                "m.csv: the model's column b is not there");
}

TEST_CASE("cli files: the name of a data set wins over a file of that name") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  folder.write("iris", table("a,b,y\n"));
  check_refused("train --data iris --label y", "which 'iris' is not", here);
  REQUIRE(run("train --data ./iris --label y --quiet --save m" + kSmall, here).exit_code == 0);
  // The checkpoint's label column is none of the data set's, so what differs is the features.
  check_refused("eval m --data iris", "features", here);
}

TEST_CASE("cli files: an empty label takes back that of a configuration file") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  folder.write("t.csv", table("a,b,y\n"));
  folder.write("run.toml", "label = \"a\"\nmodel = \"mlp:4\"\nepochs = 1\nquiet = true\n");
  folder.write("none.toml", "label = \"\"\nmodel = \"mlp:4\"\nepochs = 1\nquiet = true\n");
  CHECK(run("train --config run.toml --data t.csv", here).exit_code == 0);
  CHECK(run("train --config run.toml --data iris --label ''", here).exit_code == 0);
  CHECK(run("train --config none.toml --data iris", here).exit_code == 0);
  check_refused("train --config run.toml --data iris", "--label and --header are for CSV", here);
  folder.write("empty.toml", "recipe = \"\"\ndata = \"iris\"\n");
  check_refused("train --config empty.toml --epochs 1", "is empty; give a value", here);
}

TEST_CASE("cli files: names that a checkpoint could not hold are refused before a run") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  folder.write("t\xE4.csv", table("a,b,y\n"));
  folder.write("r\xE4.toml", "base = \"votes\"\nname = \"mine\"\n");
  check_refused("train --save m --data t\xE4.csv" + kSmall, "--data: 't\xE4.csv' is not UTF-8",
                here);
  check_refused("train --save m --data iris --recipe r\xE4.toml" + kSmall, "--recipe: 'r\xE4.toml'",
                here);
  CHECK_FALSE(std::filesystem::exists(folder / "m"));
  CHECK(run("train --quiet --data t\xE4.csv --json out" + kSmall, here).exit_code == 0);
  REQUIRE(run("train --quiet --data iris --epochs 1 --save m\xE4", here).exit_code == 0);
  CHECK(run("eval m\xE4 --json out", here).exit_code == 0);
  check_refused("train --save m --data " + folder.write("c.csv", table("\xE4,b,y\n")) + kSmall,
                "c.csv, line 1: the name of column 0 is not UTF-8");
}

TEST_CASE("cli files: what cannot be is refused in one sentence") {
  const TempDir folder;
  check_refused("train --data iris --label petal", "--label and --header are for CSV files");
  check_refused("train --data iris --header no", "which 'iris' is not");
  const std::string name(300, 'a');
  check_refused("train --data iris --save " + (folder / name).string(), "File name too long");
  check_refused("train --data x.npy,", "labels are missing");
  const std::string cache = folder.path().string();
  check_refused("train --data letter --cache " + cache,
                "run: tritgrad data fetch letter --cache " + cache);
}

TEST_CASE("cli files: a comparison's page begins with what fetches its data") {
  const TempDir folder;
  std::filesystem::rename(write_idx_folder(folder), folder / "mnist");
  folder.write("plan.toml",
               "recipes = [\"fp32\"]\nseeds = 1\nepochs = 1\nmodel = \"mlp:4\"\n"
               "[[comparison]]\ndata = \"mnist\"\n[[comparison]]\ndata = \"iris\"\n"
               "[[comparison]]\ndata = \"mnist\"\nbatch = 8\n");
  const std::string here = from_folder(folder.path());
  REQUIRE(run("compare --quiet --plan plan.toml --cache . --report r.md", here).exit_code == 0);
  const std::string page = read_text(folder / "r.md"),
                    fetch = "tritgrad data fetch mnist --cache .";
  CHECK(contains(page, "\n```\n" + fetch + "\ntritgrad compare --cache . "));
  CHECK(contains(page, "\n```\n" + fetch + "\ntritgrad compare --data mnist "));
  CHECK(contains(page, "\n```\ntritgrad compare --data iris "));
}

TEST_CASE("cli files: eval scores all rows of other data, the test rows of its own") {
  const TempDir folder;
  const std::string data = folder.write("t.csv", table("a,b,y\n"));
  const std::string other = folder.write("o.csv", table("a,b,y\n") + "1,3,1\n");
  const std::string file = folder / "m.safetensors";
  REQUIRE(run("train --data " + data + kSmall + "--quiet --save " + file).exit_code == 0);
  const Json own = Json::parse(run("eval " + file + " --json -").out);
  CHECK(own["rows"] == 8);
  CHECK(own["tested"] == "test rows");
  CHECK(Json::parse(run("eval " + file + " --json - --data " + data).out) == own);
  const Json all = Json::parse(run("eval " + file + " --json - --data " + other).out);
  CHECK(all["rows"] == 41);
  CHECK(all["tested"] == "all rows");
  CHECK(run("eval " + file + " --data " + other).out.find("% (all 41 rows)") != std::string::npos);
  // Of one class, a row alone: enough to score, if not to train.
  const std::string row = folder.write("one.csv", "a,b,y\n1,3,1\n");
  CHECK(Json::parse(run("eval " + file + " --json - --data " + row).out)["rows"] == 1);
  check_refused("train --data " + row + kSmall, "at least two classes are needed");
}

TEST_CASE("cli files: eval knows classes by their names, of which other data may lack some") {
  const TempDir folder;
  const auto rows = [](const std::string& labels) {
    std::string text = "a,y\n";
    for (int i = 0; i < 30; ++i) {
      const char label = labels[static_cast<std::size_t>(i) % labels.size()];
      text += std::to_string(label - 'p') + "," + label + "\n";
    }
    return text;
  };
  const std::string file = folder / "m.safetensors";
  REQUIRE(run("train --data " + folder.write("t.csv", rows("pqr")) +
              " --model mlp:16 --recipe fp32 --lr 0.02 --epochs 40 --quiet --save " + file)
              .exit_code == 0);
  const auto accuracy = [&](const std::string& labels) -> double {
    const std::string other = folder.write("o.csv", rows(labels));
    return Json::parse(run("eval " + file + " --json - --data " + other).out)["test_accuracy"];
  };
  CHECK(accuracy("rqp") == 1.0);
  CHECK(accuracy("rp") == 1.0);
  CHECK(accuracy("qr") == 1.0);
  check_refused("eval " + file + " --data " + folder.write("s.csv", rows("ps")),
                "s.csv, line 3: label \"s\" is none of the 3 classes of the model");
}

TEST_CASE("cli files: data that are no longer where a checkpoint names them") {
  const TempDir folder;
  const std::string data = folder.write("t.csv", table("a,b,y\n"));
  const std::string file = folder / "m.safetensors";
  REQUIRE(run("train --data " + data + kSmall + "--quiet --save " + file).exit_code == 0);
  std::filesystem::rename(data, folder / "u.csv");
  const std::string advice = "; the checkpoint '" + file + "' was trained on '" + data +
                             "': where that lies elsewhere now, name it by --data";
  check_refused("eval " + file, advice);
  check_refused("train --resume " + file, advice);
  CHECK(run("eval " + file + " --data " + std::string(folder / "u.csv")).exit_code == 0);
}

}  // namespace
}  // namespace tritgrad::test::test_cli_files
