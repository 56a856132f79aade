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
  const auto check_quiet = [](const Result& result, int exit_code) {
    CAPTURE(result.err);
    CHECK(result.exit_code == exit_code);
    CHECK_FALSE(holds_control_characters(result.out));
    CHECK_FALSE(holds_control_characters(result.err));
  };
  check_quiet(run("train --data " + data + " --model mlp:4 --epochs 2 --save " + model), 0);
  check_quiet(run("eval " + model), 0);
  check_quiet(run("inspect " + model), 0);
  const std::string other = folder.write("u.csv", "a\x1b[1m,b\x7F,y\n1,2,\x1b[34mblue\n1,2,x\n");
  check_quiet(run("eval " + model + " --data " + other), 1);
  check_quiet(run("train --data " + folder.write("v.csv", "a,y\n\x1b[2J,1\n1,2\n2,2\n")), 1);
}

}  // namespace
}  // namespace tritgrad::test::test_control_characters
