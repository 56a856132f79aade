// Data that come through pipes.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program.h"

namespace tritgrad::test::test_pipes {
namespace {

using Json = nlohmann::json;

std::string table() {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 40; ++i) {
    text += std::to_string(i % 2) + "," + std::to_string(i) + "," + std::to_string(i % 2) + "\n";
  }
  return text;
}

// Runs a command of a shell in which $TRITGRAD is the program.
Result shell(const std::string& command, const std::string& shell_program = "sh") {
  const TempDir folder;
  const std::string script = folder.write("script", command);
  const std::string out = folder / "stdout", err = folder / "stderr";
  const int status = std::system(("TRITGRAD='" TRITGRAD_BINARY "' " + shell_program + " '" +
                                  script + "' >'" + out + "' 2>'" + err + "' </dev/null")
                                     .c_str());
  return {WEXITSTATUS(status), read_text(out), read_text(err)};
}

const std::string kTrain = "$TRITGRAD train --model mlp:4 --epochs 2 --json - --quiet ";

std::string hash_of(const Result& result) {
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out)["weights_sha256"];
}

TEST_CASE("pipes: a table through a pipe trains as from its file") {
  const TempDir folder;
  const std::string path = "'" + folder.write("t.csv", table()) + "'";
  const std::string file = hash_of(shell(kTrain + "--data " + path));
  CHECK(hash_of(shell("cat " + path + " | " + kTrain + "--data -")) == file);
  CHECK(hash_of(shell(kTrain + "--data - <" + path)) == file);
  CHECK(hash_of(shell(kTrain + "--data /dev/stdin <" + path)) == file);
  CHECK(hash_of(shell("cat " + path + " | " + kTrain + "--data /dev/stdin")) == file);
  CHECK(hash_of(shell("gzip -c " + path + " | " + kTrain + "--data -")) == file);
  CHECK(hash_of(shell("iconv -f UTF-8 -t UTF-16 " + path + " | " + kTrain + "--data -")) == file);
  CHECK(hash_of(shell(kTrain + "--data <(cat " + path + ")", "bash")) == file);
  const Result named = shell("cat " + path + " | " + kTrain + "--data -");
  CHECK(Json::parse(named.out)["data"] == "stdin");
}

TEST_CASE("pipes: what is resumed or scored needs the rows again") {
  const TempDir folder;
  const std::string path = "'" + folder.write("t.csv", table()) + "'";
  const std::string model = "'" + (folder / "m.safetensors").string() + "'";
  const std::string whole = hash_of(shell(kTrain + "--data " + path));
  REQUIRE(
      shell("cat " + path + " | " + kTrain + "--data - --stop-after 1 --save " + model).exit_code ==
      0);
  for (const std::string& command :
       {"$TRITGRAD eval " + model, "$TRITGRAD train --resume " + model}) {
    const Result refused = shell(command);
    CHECK(refused.exit_code == 1);
    CHECK(contains(refused.err,
                   "was trained on standard input, which cannot be read again: name a file with "
                   "the same rows by --data, or send them once more and say --data -"));
    CHECK(shell(command + " --data " + path).exit_code == 0);
    CHECK(shell("cat " + path + " | " + command + " --data -").exit_code == 0);
  }
  REQUIRE(
      shell("cat " + path + " | " + kTrain + "--data - --stop-after 1 --save " + model).exit_code ==
      0);
  CHECK(hash_of(shell("$TRITGRAD train --json - --quiet --resume " + model + " --data " + path)) ==
        whole);
  const std::string said =
      shell("cat " + path +
            " | $TRITGRAD train --model mlp:4 --epochs 2 --data - --stop-after 1 --save " + model)
          .err;
  CHECK(
      contains(said, "to go on, with the rows of standard input in FILE: tritgrad train --resume"));
  CHECK(contains(said, " --data FILE"));
}

TEST_CASE("pipes: what cannot be done with them is said") {
  const TempDir folder;
  const std::string path = folder.write("t.csv", table());
  const Result twice = shell("cat '" + path + "' | $TRITGRAD compare --data -");
  CHECK(twice.exit_code == 1);
  CHECK(contains(twice.err, "a comparison reads its data more than once, which a pipe does not "));
  const Result ranks = shell("cat '" + path +
                             "' | OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 $TRITGRAD train "
                             "--dp votes --data -");
  CHECK(contains(ranks.err, "a pipe can be read by one process alone, and there are 2 ranks"));
  const Result empty = shell("$TRITGRAD train --data - </dev/null");
  CHECK(empty.exit_code == 1);
  CHECK(contains(empty.err, "tritgrad: standard input: the file is empty"));
}

}  // namespace
}  // namespace tritgrad::test::test_pipes
