// Names from files never speak to the terminal.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/support/program.h"

namespace tritgrad::test::test_control_characters {
namespace {

// A line break apart, which tables and sentences end in.
bool holds_control_characters(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) {
                       const auto byte = static_cast<unsigned char>(c);
                       return (byte < 0x20 && c != '\n') || byte == 0x7F;
                     }) ||
         contains(text, "\xC2\x9B");
}

void check_quiet(const Result& result, int exit_code) {
  CAPTURE(result.out);
  CAPTURE(result.err);
  CHECK(result.exit_code == exit_code);
  CHECK_FALSE(holds_control_characters(result.out));
  CHECK_FALSE(holds_control_characters(result.err));
}

TEST_CASE("control characters: those of columns and classes reach no terminal") {
  const TempDir folder;
  // Escape sequences, as ASCII and as one character of UTF-8, with uneven classes.
  std::string rows;
  for (int i = 0; i < 60; ++i) {
    rows += std::to_string(i % 5 == 0 ? 1 : 0) + "," + std::to_string(i) + "," +
            (i % 5 == 0 ? "\x1b[31mred\n"
                        : "\xC2\x9B"
                          "32mgreen\n");
  }
  const std::string data = folder.write("t.csv", "a\x1b[1m,b\x7F,y\x1b]0;title\x07\n" + rows);
  const std::string model = folder / "m.safetensors";
  check_quiet(run("train --data " + data + " --model mlp:4 --epochs 2 --save " + model), 0);
  check_quiet(run("eval " + model), 0);
  check_quiet(run("inspect " + model), 0);
  const std::string other = folder.write("u.csv", "a\x1b[1m,b\x7F,y\n1,2,\x1b[34mblue\n1,2,x\n");
  check_quiet(run("eval " + model + " --data " + other), 1);
  check_quiet(run("train --data " + folder.write("v.csv", "a,y\n\x1b[2J,1\n1,2\n2,2\n")), 1);
}

TEST_CASE("control characters: those of file names reach no terminal") {
  const TempDir folder;
  std::string rows = "a,b,y\n";
  for (int i = 0; i < 60; ++i) {
    rows += std::to_string(i % 7) + "," + std::to_string(i % 3) + "," + "pq"[i % 2] + "\n";
  }
  const std::string name =
      "x\x1b[31m\x07\xC2\x9B"
      "32m";
  const auto path = [&](const std::string& ending) {
    return "'" + (folder / (name + ending)).string() + "'";
  };
  folder.write(name + ".csv", rows);
  folder.write(name + ".txt", "no recipe");
  const std::string data = " --data " + path(".csv"), model = path(".safetensors"),
                    train = "train --model mlp:4 --epochs 2" + data;
  const Result trained = run(train + " --save " + model);
  check_quiet(trained, 0);
  CHECK(contains(trained.out, "saved          " + folder.path().string() + "/x?[31m??32m.safe"));
  check_quiet(run("eval " + model + data), 0);
  check_quiet(run("inspect " + model), 0);
  check_quiet(run("export " + model + " --to " + path(".h")), 0);
  check_quiet(run("compare --model mlp:4 --recipes latent8,fp32 --seeds 1 --epochs 1 --report " +
                  path(".html") + data),
              0);
  check_quiet(run("train --recipe " + path(".txt") + data), 1);
  check_quiet(run("eval " + path(".nothing")), 1);
  // What another program is to read stays as it is: JSON has escapes of its own.
  CHECK(contains(run(train + " --quiet --json -").out, "\\u001b[31m\\u0007"));
}

}  // namespace
}  // namespace tritgrad::test::test_control_characters
