// Files that commands write: refused before the work begins, never in the place of another kind of
// file, of one that is read, or of another output.
#include <doctest/doctest.h>

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
  REQUIRE(run("train --data t.csv --save m" + kShort, here).exit_code == 0);
  const std::string saved = read_text(folder / "m");
  const std::string train = "train --data t.csv --recipe r.toml" + kShort;
  for (const char* option : {"--json ", "--log "}) {
    for (const char* input : {"t.csv", "./t.csv", "link.html", "r.toml", "m"}) {
      CAPTURE(input);
      check_refused(train + option + input, kOtherKind, here);
    }
    check_refused(std::string("train --resume m ") + option + "m", kOtherKind, here);
  }
  for (const char* input : {"t.csv", "r.toml", "link.html"}) {
    check_refused(train + "--save " + input, "is there and is no checkpoint", here);
  }
  check_refused("train --config run.toml --data iris --json run.toml", kOtherKind, here);
  check_refused("train --config=run.toml --data iris --save ./run.toml", "is no checkpoint", here);
  for (const char* command : {"eval m", "inspect m"}) {
    check_refused(std::string(command) + " --json m", kOtherKind, here);
  }
  check_refused("eval m --json t.csv", kOtherKind, here);
  check_refused("inspect --model mlp:4-4-2 --recipe r.toml --json r.toml", kOtherKind, here);
  check_refused("compare --plan plan.toml --json plan.toml", kOtherKind, here);
  check_refused("compare --data t.csv --json t.csv", kOtherKind, here);
  check_refused("compare --data t.csv --report link.html", kOtherKind, here);
  check_refused("compare --data iris --recipes votes,r.toml --json r.toml", kOtherKind, here);
  CHECK(read_text(table) == rows);
  CHECK(read_text(folder / "r.toml") == recipe);
  CHECK(read_text(folder / "run.toml") == config);
  CHECK(read_text(folder / "plan.toml") == plan);
  CHECK(read_text(folder / "m") == saved);
}

TEST_CASE("output file: files of a folder of data stay") {
  const TempDir folder;
  const std::string idx = write_idx_folder(folder);
  const std::string labels = idx + "/train-labels-idx1-ubyte", before = read_text(labels);
  const std::string here = from_folder(folder.path());
  fs::create_directory_symlink("idx", folder / "link");
  for (const char* output : {"idx/train-labels-idx1-ubyte", "link/train-labels-idx1-ubyte"}) {
    check_refused("train --data idx" + kShort + "--json " + output, kOtherKind, here);
    check_refused("train --data idx" + kShort + "--save " + output, "is no checkpoint", here);
  }
  CHECK(run("train --data idx" + kShort + "--json idx.json --save m", here).exit_code == 0);
  CHECK(read_text(labels) == before);
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
