// Files that commands write: refused before the work begins, never in the place of another kind of
// file, of one that is read, or of another output.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/files/atomic_file.h"
#include "models/training/saved_run.h"
#include "tests/support/idx_folder.h"
#include "tests/support/program.h"
#include "tests/support/support_files.h"
#include "tools/cli/output_file.h"

namespace tritgrad::test::test_output_file {
namespace {

namespace fs = std::filesystem;

const std::string kShort = " --model mlp:4 --epochs 1 --quiet ";
const std::string kOtherKind = "is there and is of another kind than what would be written";
const std::string kBusy = "another run, or another output of this one, is writing to this file";

// A table of which a network of four neurons can be made.
std::string write_table(const TempDir& folder, const std::string& name) {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 40; ++i) {
    text += std::to_string(i % 2) + "," + std::to_string(i) + "," + std::to_string(i % 2) + "\n";
  }
  return folder.write(name, text);
}

TEST_CASE("output file: it appears whole or not at all, and is held until then") {
  const TempDir folder;
  const std::string path = folder / "out";
  { const OutputFile unused("--json", path, kJsonBegins); }
  CHECK(fs::is_empty(folder.path()));
  OutputFile out("--json", path, kJsonBegins);
  CHECK(contains(refusal([&] { const OutputFile second("--log", path, kJsonBegins); }),
                 "--log: " + path + ": " + kBusy));
  CHECK_FALSE(fs::exists(path));
  out.write("{}");
  CHECK(read_text(path) == "{}\n");
  CHECK(refusal([&] { const OutputFile again("--json", path, kJsonBegins); }).empty());
}

TEST_CASE("output file: by whatever links it is reached") {
  const TempDir folder;
  folder.write("out", "");
  fs::create_symlink(folder / "out", folder / "link");
  fs::create_directory_symlink(folder.path(), folder / "here");
  const OutputFile out("--json", folder / "out", kJsonBegins);
  for (const char* name : {"link", "./out", "here/out", "here/link"}) {
    CAPTURE(name);
    CHECK(contains(refusal([&] { const OutputFile second("--log", folder / name, kJsonBegins); }),
                   kBusy));
  }
  CHECK(refusal([&] { const OutputFile other("--log", folder / "other", kJsonBegins); }).empty());
}

TEST_CASE("output file: what cannot be written is refused, and begins with the option") {
  const TempDir folder;
  const auto said = [&](const std::string& path) {
    return refusal([&] { const OutputFile out("--json", path, kJsonBegins); });
  };
  for (const std::string& path :
       {(folder / "missing/out").string(), folder.path().string(), (folder / "x/").string(),
        (folder / std::string(300, 'a')).string()}) {
    CAPTURE(path);
    CHECK(said(path).starts_with("--json: "));
  }
  CHECK(contains(said(folder / "missing/out"), "No such file or directory"));
  CHECK(contains(said(folder / std::string(300, 'a')), "File name too long"));
  fs::create_symlink(folder / "nothing", folder / "dangling");
  CHECK(contains(said(folder / "dangling"), "a link to a file that does not exist"));
  for (const std::string& text :
       {std::string("a,b\n"), std::string("\x89PNG"), std::string(2, '\0'), std::string(" {}"),
        std::string("# notes"), std::string("[weight]\nlr = 0.1\n")}) {
    const std::string path = folder.write("mine", text);
    CHECK(said(path) ==
          "--json: '" + path + "' " + kOtherKind + "; delete it, or name another file");
    CHECK(read_text(path) == text);
  }
  for (const char* text : {"", "{}"}) CHECK(said(folder.write("mine", text)).empty());
}

TEST_CASE("output file: no file, standard output, pipes and devices") {
  for (const char* path : {"", "/dev/null"}) OutputFile("--json", path, kJsonBegins).write("{}");
  OutputFile full("--json", "/dev/full", kJsonBegins);
  CHECK(refusal([&] { full.write("{}"); }) ==
        "--json: '/dev/full' cannot be written; choose another file");
  const std::string eval = "inspect --model mlp:4-4-2 --recipe votes --json ";
  const std::string plain = run(eval + "-").out;
  CHECK(nlohmann::json::parse(plain)["recipe"] == "votes");
  CHECK(contains(run(eval + "/dev/stdout").out, plain));
}

// A name of 255 letters may be there, but none of 12 more beside it, by which it would be replaced.
TEST_CASE("output file: what has too long a name is refused before the work, by every command") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  REQUIRE(run("train --data iris --save m" + kShort, here).exit_code == 0);
  // None of these ends before the test does.
  const std::string train = "train --data iris --model mlp:4 --epochs 1000000 --quiet ";
  const std::string compare = "compare --data iris --cache c --epochs 1000000 --quiet ";
  const std::string outputs[] = {train + "--save ",
                                 train + "--json ",
                                 train + "--log ",
                                 "train --resume m --epochs 1000000 --quiet --save ",
                                 "train --resume m --epochs 1000000 --quiet --log ",
                                 compare + "--json ",
                                 compare + "--report ",
                                 "eval m --json ",
                                 "export m --to ",
                                 "export m --to m.h --json ",
                                 "inspect m --json ",
                                 "inspect --model mlp:4-4-2 --json ",
                                 "bench --rounds 1000 --json "};
  for (const std::string& output : outputs) {
    for (const std::size_t letters : {252u, 253u, 255u, 256u}) {
      const bool is_page = output.ends_with("--report ");
      const std::string ending = output.ends_with("--to ") ? ".h" : is_page ? ".html" : "";
      const std::string name = std::string(letters - ending.size(), 'a') + ending;
      check_refused(output + name, "File name too long", here + " timeout 60");
    }
  }
  CHECK_FALSE(fs::exists(folder / "m.h"));
  CHECK_FALSE(fs::exists(folder / "c"));
}

TEST_CASE("output file: two outputs that are one file, however it is written") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  const std::string whole = folder / "new";
  for (const std::string& again :
       {std::string("./new"), whole, "../" + folder.path().filename().string() + "/new"}) {
    check_refused("train --data iris" + kShort + "--save new --json " + again, kBusy, here);
    check_refused("train --data iris" + kShort + "--save " + again + " --log new", kBusy, here);
    check_refused("train --data iris" + kShort + "--json " + again + " --log new",
                  "--log: new: " + kBusy, here);
  }
  check_refused("compare --data iris --json new.html --report new.html",
                "--report: new.html: " + kBusy, here);
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("output file: what a command reads is never replaced") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  const std::string table = write_table(folder, "t.csv"), rows = read_text(table);
  const std::string recipe = "base = \"votes\"\nname = \"mine\"\n";
  const std::string config = "model = \"mlp:4\"\nepochs = 1\nquiet = true\n";
  const std::string plan = "epochs = 1\nmodel = \"mlp:4\"\n[[comparison]]\ndata = \"iris\"\n";
  folder.write("r.toml", recipe);
  folder.write("run.toml", config);
  folder.write("plan.toml", plan);
  fs::create_symlink("t.csv", folder / "link.html");
  fs::create_hard_link(table, folder / "hard.html");
  REQUIRE(run("train --data t.csv --save m" + kShort, here).exit_code == 0);
  const std::string saved = read_text(folder / "m");
  const std::string train = "train --data t.csv --recipe r.toml" + kShort;
  for (const char* option : {"--json ", "--log ", "--save "}) {
    for (const char* input : {"t.csv", "./t.csv", "link.html", "hard.html"}) {
      CAPTURE(input);
      check_refused(train + option + input,
                    std::string(option, std::strlen(option) - 1) + ": '" + input +
                        "' is also read (--data) and would be replaced; name another file",
                    here);
    }
    check_refused(train + option + "r.toml", "is also read (--recipe)", here);
  }
  for (const char* option : {"--json ", "--log "}) {
    check_refused(train + option + "m", kOtherKind, here);
    check_refused(std::string("train --resume m ") + option + "m", "also read (--resume)", here);
    check_refused(std::string("train --resume m --save n ") + option + "./m",
                  "also read (--resume)", here);
  }
  check_refused("train --config run.toml --data iris --json run.toml", "read (--config)", here);
  check_refused("train --config=run.toml --data iris --save ./run.toml", "read (--config)", here);
  for (const char* command : {"eval m", "inspect m"}) {
    check_refused(std::string(command) + " --json m", "is also read (the checkpoint)", here);
  }
  check_refused("eval m --json t.csv", "is also read (--data)", here);
  check_refused("inspect --model mlp:4-4-2 --recipe r.toml --json r.toml", "(--recipe)", here);
  check_refused("bench --only steps --recipe votes,r.toml --json r.toml", "(--recipe)", here);
  check_refused("compare --plan plan.toml --json plan.toml", "is also read (--plan)", here);
  check_refused("compare --data t.csv --json t.csv", "is also read (--data)", here);
  check_refused("compare --data t.csv --report link.html",
                "--report: 'link.html' is also read (--data)", here);
  check_refused("compare --data iris --recipes 'votes, r.toml' --json r.toml",
                "is also read (--recipes)", here);
  check_refused("compare --data iris --config run.toml --json run.toml", "(--config)", here);
  CHECK(read_text(table) == rows);
  CHECK(read_text(folder / "r.toml") == recipe);
  CHECK(read_text(folder / "run.toml") == config);
  CHECK(read_text(folder / "plan.toml") == plan);
  CHECK(read_text(folder / "m") == saved);
}

TEST_CASE("output file: what begins as an output does is no less an input") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  std::string rows = "{a,b,y\n";
  for (int i = 0; i < 40; ++i) {
    rows += std::to_string(i % 2) + "," + std::to_string(i) + "," + std::to_string(i % 2) + "\n";
  }
  folder.write("t.csv", rows);
  check_refused("train --data t.csv --json t.csv" + kShort, "is also read (--data)", here);
  CHECK(read_text(folder / "t.csv") == rows);
  const std::string plan =
      "# as a page in Markdown begins\nepochs = 1\n[[comparison]]\ndata = \"iris\"\n";
  folder.write("plan.md", plan);
  check_refused("compare --plan plan.md --report plan.md", "is also read (--plan)", here);
  CHECK(read_text(folder / "plan.md") == plan);
}

TEST_CASE("output file: the data and the recipes of a plan are read") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  const std::string table = write_table(folder, "u.csv"), before = read_text(table);
  folder.write("mine.toml", "base = \"votes\"\nname = \"mine\"\n");
  folder.write("plan.toml",
               "epochs = 1\nmodel = \"mlp:4\"\n[[comparison]]\ndata = \"iris\"\n"
               "[[comparison]]\ndata = \"u.csv\"\nrecipes = [\"votes\", \"mine.toml\"]\n");
  for (const char* option : {"--json ", "--report "}) {
    CAPTURE(option);
    const bool page = option == std::string("--report ");
    if (page) {
      fs::create_symlink("u.csv", folder / "u.html");
      fs::create_symlink("mine.toml", folder / "mine.html");
    }
    const std::string compare = std::string("compare --plan plan.toml --cache c ") + option;
    check_refused(compare + (page ? "u.html" : "u.csv"),
                  "plan 'plan.toml', the comparison in line 5: " + std::string(option, 6), here);
    check_refused(compare + (page ? "mine.html" : "mine.toml"), "is also read (--recipes)", here);
  }
  CHECK(read_text(table) == before);
}

TEST_CASE("output file: names of data sets and built-in recipes are no files") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  const std::string train = "train --data iris --recipe votes --json votes --log iris" + kShort;
  for (int time = 0; time < 2; ++time) CHECK(run(train, here).exit_code == 0);
  check_refused("train --data ./iris --json iris", "is also read (--data)", here);
}

TEST_CASE("output file: the recipe of a checkpoint is no file that is read") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  folder.write("r.toml", "base = \"votes\"\nname = \"mine\"\n");
  const std::string train = "train --data iris --recipe r.toml --save m --stop-after 1" + kShort;
  REQUIRE(run(train, here).exit_code == 0);
  folder.write("r.toml", "{}");
  CHECK(run("eval m --json r.toml", here).exit_code == 0);
  CHECK(run("train --resume m --quiet --json r.toml", here).exit_code == 0);
}

TEST_CASE("output file: files of a folder of data, and both arrays of a pair, stay") {
  const TempDir folder;
  const std::string idx = write_idx_folder(folder);
  const std::string labels = idx + "/train-labels-idx1-ubyte", before = read_text(labels);
  const std::string here = from_folder(folder.path());
  fs::create_directory_symlink("idx", folder / "link");
  fs::create_symlink(labels, folder / "labels");
  for (const char* output : {"idx/train-labels-idx1-ubyte", "link/train-labels-idx1-ubyte",
                             "./idx/../idx/train-labels-idx1-ubyte", "labels"}) {
    check_refused("train --data idx" + kShort + "--json " + output, "also read (--data)", here);
    check_refused("train --data link/" + kShort + "--save " + output, "also read (--data)", here);
  }
  fs::create_directory_symlink("idx", folder / "mnist");
  check_refused("compare --data mnist --cache . --json labels", "also read (--data)", here);
  CHECK(run("train --data idx" + kShort + "--json idx.json --save m", here).exit_code == 0);
  check_refused("eval m --json labels", "is also read (--data)", here);
  CHECK(read_text(labels) == before);
  const std::string x = folder.write("x.npy", "x"), y = folder.write("y.npy", "y");
  for (const std::string& array : {x, y}) {
    check_refused("train --data " + x + "," + y + " --json " + array, "also read (--data)");
  }
}

TEST_CASE("output file: results are replaced by results of the same kind") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  for (int time = 0; time < 2; ++time) {  // the second time there are files of these names
    CHECK(run("train --data iris --json votes --log iris --save m" + kShort, here).exit_code == 0);
    CHECK(run("compare --data iris --recipes votes --seeds 1 --json votes --report p.md --cache c" +
                  kShort,
              here)
              .exit_code == 0);
    CHECK(run("inspect --model mlp:4-4-2 --recipe votes --json votes", here).exit_code == 0);
  }
  CHECK(run("train --resume m --quiet --save ./m", here).exit_code == 0);
  // Nothing is left beside them.
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    CHECK(entry.path().extension() != ".tritgrad-tmp");
  }
}

TEST_CASE("output file: a comparison's configuration file is no part of its command") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  folder.write("run.toml", "model = \"mlp:4\"\nepochs = 1\nquiet = true\n");
  const Result result = run(
      "compare --data iris --recipes votes --seeds 1 --cache c --json - --config run.toml", here);
  REQUIRE(result.exit_code == 0);
  const std::string command =
      nlohmann::json::parse(result.out)["comparisons"][0]["command"].get<std::string>();
  CHECK(contains(command, "--model mlp:4"));
  CHECK_FALSE(contains(command, "run.toml"));
}

TEST_CASE("output file: a run neither replaces what is no checkpoint nor what another run writes") {
  const TempDir folder;
  const std::string train = "train --data iris --epochs 1 --quiet --save ";
  const std::string table = folder.write("table.csv", "a,b\n1,2\n");
  check_refused(train + table, "--save: '" + table +
                                   "' is there and is no checkpoint, or a damaged one; delete it, "
                                   "or name another file");
  CHECK(read_text(table) == "a,b\n1,2\n");

  const std::string save = folder.write("run.st", "");  // as mktemp leaves it
  CHECK(run(train + save).exit_code == 0);
  CHECK(is_replaceable(save));
  CHECK(run(train + save).exit_code == 0);
  const AtomicFile other(save);
  check_refused(train + save, "--save: " + save + ": " + kBusy);
  check_refused("train --resume " + save, "--resume: " + save + ": " + kBusy);
}

}  // namespace
}  // namespace tritgrad::test::test_output_file
