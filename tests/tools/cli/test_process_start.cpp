// What the program makes of the state in which a shell or a scheduler starts it.
#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <string>

#include "models/training/saved_run.h"
#include "tests/support/program.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_process_start {
namespace {

const std::string kTrain = "train --data iris --model mlp:4 --epochs 2 --threads 1 ";

std::set<std::string> names_in(const TempDir& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    names.insert(entry.path().filename());
  }
  return names;
}

// Runs the program as `sh -c 'BEFORE; exec "$@" REDIRECTIONS'` does.
Result run_in_shell(const std::string& arguments, const std::string& before,
                    const std::string& redirections = "") {
  return run(arguments, "sh -c '" + before + " exec \"$@\" " + redirections + "' sh");
}

// Its updates are lost, which it warns of while its files are open.
const std::string kWarns =
    "train --data iris --model mlp:8 --epochs 4 --threads 1 --recipe naive --lr 1e-6 ";

TEST_CASE("process start: closed standard streams take none of the files that are written") {
  const TempDir folder;
  const std::string files =
      "--save " + (folder / "m").string() + " --log " + (folder / "l").string();
  const Result open = run(kWarns + "--quiet " + files);
  REQUIRE(open.exit_code == 0);
  REQUIRE(open.err.starts_with("warning: "));
  const std::string model = read_text(folder / "m"), log = read_text(folder / "l");
  REQUIRE(is_replaceable(folder / "m"));
  for (const char* closed : {"0<&-", "1>&-", "2>&-", "0<&- 2>&-", "0<&- 1>&- 2>&-"}) {
    CAPTURE(closed);
    // With new files, as with those that they replace.
    for (const char* name : {"m", "l"}) std::filesystem::remove(folder / name);
    for (int time = 0; time < 2; ++time) {
      CHECK(run_in_shell(kWarns + "--quiet " + files, "", closed).exit_code == 0);
      CHECK(read_text(folder / "m") == model);
      CHECK(read_text(folder / "l") == log);
    }
    // A refusal goes nowhere, least of all into a file.
    CHECK(run_in_shell(
              "train --resume " + (folder / "l").string() + " --log " + (folder / "new").string(),
              "", closed)
              .exit_code == 1);
    CHECK(names_in(folder) == std::set<std::string>{"l", "m"});
  }
  // What should be printed cannot be, which is a failure, as that of a full disk is.
  const Result result = run_in_shell(kWarns + files, "", "0<&- 1>&-");
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "standard output cannot be written; is it closed, or the disk full?"));
  CHECK(read_text(folder / "l") == log);
}

TEST_CASE("process start: remains of a killed run block nothing, whatever they hold") {
  const TempDir folder;
  const std::string model = folder / "m", log = folder / "l";
  REQUIRE(run(kTrain + "--quiet --stop-after 3 --save " + model + " --log " + log).exit_code == 0);
  folder.write("m.tritgrad-tmp", "warning: this is no checkpoint\n");
  folder.write("l.tritgrad-tmp", "nor a log\n");
  CHECK(run("train --quiet --resume " + model + " --log " + log).exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(folder / "m.tritgrad-tmp"));
  CHECK_FALSE(std::filesystem::exists(folder / "l.tritgrad-tmp"));
}

TEST_CASE("process start: a full disk leaves the log of before as it was") {
  const TempDir folder;
  const std::string model = folder / "m", log = folder / "l";
  REQUIRE(run(kTrain + "--quiet --save " + model + " --log " + log).exit_code == 0);
  const std::string before = read_text(log);
  // No file may grow beyond 0 blocks.
  const Result result =
      run_in_shell("train --quiet --epochs 3 --resume " + model + " --log " + log + " 2>/dev/null",
                   "ulimit -f 0;");
  CHECK(result.exit_code == 1);
  CHECK(read_text(log) == before);
}

TEST_CASE("process start: a small stack is enlarged, or refused where it may not be") {
  const std::string train = "train --data digits --model conv:4,M --epochs 1 --quiet";
  for (const char* kib : {"128", "256", "512"}) {
    CAPTURE(kib);
    // With a policy of waiting the program would otherwise not be started again.
    for (const char* policy : {"", "OMP_WAIT_POLICY=passive; export OMP_WAIT_POLICY; "}) {
      const std::string before = std::string(policy) + "ulimit -Ss " + kib + ";";
      CHECK(run_in_shell(train, before).exit_code == 0);
    }
    const Result result = run_in_shell(train, std::string("ulimit -s ") + kib + ";");
    CHECK(result.exit_code == 1);
    CHECK(result.err == concat("tritgrad: the stack may have no more than ", kib,
                               " KiB (ulimit -Hs), and training needs 1024; start the program "
                               "where the limit is higher\n"));
  }
}

}  // namespace
}  // namespace tritgrad::test::test_process_start
