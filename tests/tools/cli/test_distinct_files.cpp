// What counts as one of the files that a command reads or writes, and what does not.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/idx_folder.h"
#include "tests/support/program.h"
#include "tests/support/support_files.h"
#include "tools/cli/distinct_files.h"

namespace tritgrad::test::test_distinct_files {
namespace {

namespace fs = std::filesystem;

const std::string kShort = " --model mlp:4 --epochs 1 --quiet ";

// A table of which a network of four neurons can be made.
std::string write_table(const TempDir& folder, const std::string& name) {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 40; ++i) {
    text += std::to_string(i % 2) + "," + std::to_string(i) + "," + std::to_string(i % 2) + "\n";
  }
  return folder.write(name, text);
}

TEST_CASE("distinct files: two outputs that are one new file, however it is written") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  const std::string whole = folder / "new";
  for (const std::string& again :
       {std::string("./new"), whole, "../" + folder.path().filename().string() + "/new"}) {
    check_refused("train --data iris" + kShort + "--save new --json " + again,
                  "--json: '" + again + "' is also written by --save", here);
    check_refused("train --data iris" + kShort + "--save " + again + " --log new",
                  "--log: 'new' is also written by --save", here);
  }
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("distinct files: names of data sets and recipes are no files") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  for (int time = 0; time < 2; ++time) {  // the second time there are files of these names
    CHECK(
        run("train --data iris --recipe votes --json votes --log iris" + kShort, here).exit_code ==
        0);
    CHECK(run("compare --data iris --recipes votes --seeds 1 --json votes --cache c" + kShort, here)
              .exit_code == 0);
    CHECK(run("inspect --model mlp:4-4-2 --recipe votes --json votes", here).exit_code == 0);
  }
  check_refused("train --data ./iris --json iris", "is also read (--data)", here);
}

TEST_CASE("distinct files: the recipe of a checkpoint is no file that is read") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  folder.write("r.toml", "base = \"votes\"\nname = \"mine\"\n");
  REQUIRE(
      run("train --data iris --recipe r.toml --save m --stop-after 1" + kShort, here).exit_code ==
      0);
  CHECK(run("eval m --json r.toml", here).exit_code == 0);
  CHECK(run("train --resume m --quiet --json r.toml", here).exit_code == 0);
}

TEST_CASE("distinct files: nothing is written into a folder that is read") {
  const TempDir folder;
  const std::string idx = write_idx_folder(folder);
  const std::string labels = idx + "/train-labels-idx1-ubyte", before = read_text(labels);
  const std::string here = from_folder(folder.path());
  const std::string train = "train --data idx" + kShort;
  fs::create_directory_symlink("idx", folder / "link");
  for (const char* output :
       {"idx/train-labels-idx1-ubyte", "link/train-labels-idx1-ubyte", "./idx/../idx/new"}) {
    check_refused(train + "--json " + output, "lies in the folder 'idx' that is read (--data)",
                  here);
  }
  check_refused("train --data link/" + kShort + "--save idx/m", "lies in the folder", here);
  CHECK(run(train + "--json idx.json --save m", here).exit_code == 0);
  check_refused("eval m --json idx/train-labels-idx1-ubyte", "lies in the folder", here);
  fs::create_directory_symlink("idx", folder / "mnist");
  check_refused("compare --data mnist --cache . --json idx/x", "lies in the folder './mnist'",
                here);
  CHECK(read_text(labels) == before);
}

TEST_CASE("distinct files: both arrays of a pair are read") {
  const TempDir folder;
  const std::string x = folder.write("x.npy", "x"), y = folder.write("y.npy", "y");
  for (const std::string& array : {x, y}) {
    check_refused("train --data " + x + "," + y + " --json " + array, "is also read (--data)");
  }
}

TEST_CASE("distinct files: what becomes an output may be no input, and no other output") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  const std::string table = write_table(folder, "m.tmp"), before = read_text(table);
  for (const char* option : {"--json ", "--save "}) {
    check_refused("train --data m.tmp" + kShort + option + "m",
                  "'m.tmp', which becomes 'm', is also read (--data)", here);
  }
  CHECK(run("train --data m.tmp --log m" + kShort, here).exit_code == 0);  // written in place
  CHECK(read_text(table) == before);
  check_refused("train --data iris" + kShort + "--save n --log n.tmp",
                "--log: 'n.tmp' is also written by --save", here);
  check_refused("train --data iris" + kShort + "--save n.tmp --json n", "which becomes 'n'", here);
  check_refused("train --data iris" + kShort + "--save n --log n.lock",
                "--log: 'n.lock' is also written by --save", here);
}

TEST_CASE("distinct files: a configuration file is read") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  const std::string text = "model = \"mlp:4\"\nepochs = 1\nquiet = true\n";
  const std::string config = folder.write("run.toml", text);
  check_refused("train --config run.toml --data iris --json run.toml", "also read (--config)",
                here);
  check_refused("train --config=run.toml --data iris --save ./run.toml", "read (--config)", here);
  check_refused("compare --data iris --config run.toml --json " + config, "(--config)", here);
  folder.write("eval.toml", "data = \"iris\"\n");
  REQUIRE(run("train --config run.toml --data iris --save m", here).exit_code == 0);
  check_refused("eval m --config eval.toml --json eval.toml", "(--config)", here);
  CHECK(read_text(config) == text);
}

TEST_CASE("distinct files: a comparison's configuration file is no part of its command") {
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

TEST_CASE("distinct files: the data and the recipes of a plan are read") {
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
  check_refused("compare --plan plan.toml --json plan.toml", "is also read (--plan)", here);
  CHECK(read_text(table) == before);
}

TEST_CASE("distinct files: a comparison reads its data and its recipes, and writes a page") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  write_table(folder, "u.csv");
  write_table(folder, "page.html");
  folder.write("mine.toml", "base = \"votes\"\nname = \"mine\"\n");
  check_refused("compare --data u.csv --json u.csv", "--json: 'u.csv' is also read (--data)", here);
  check_refused("compare --data page.html --report page.html",
                "--report: 'page.html' is also read (--data)", here);
  check_refused("compare --data iris --recipes 'votes, mine.toml' --json mine.toml",
                "is also read (--recipes)", here);
  check_refused("compare --data iris --json new.html --report new.html",
                "--report: 'new.html' is also written by --json", here);
}

TEST_CASE("distinct files: a checkpoint that is resumed is no log") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  REQUIRE(run("train --data iris --save m --stop-after 1" + kShort, here).exit_code == 0);
  const std::string saved = read_text(folder / "m");
  // Saved elsewhere, so that only what is read stands in the way.
  check_refused("train --resume m --save n --log m", "--log: 'm' is also read (--resume)", here);
  check_refused("train --resume m --save n --json m", "--json: 'm' is also read (--resume)", here);
  check_refused("train --resume m --log m", "(--resume)", here);
  CHECK(read_text(folder / "m") == saved);
  CHECK(run("train --resume m --quiet --save ./m", here).exit_code == 0);
}

}  // namespace
}  // namespace tritgrad::test::test_distinct_files
