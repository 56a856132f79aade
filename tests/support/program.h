// Runs the program as a user would.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/support_files.h"

namespace tritgrad::test {

struct Result {
  int exit_code;
  std::string out, err;
};

// `under`: a program that starts it, with arguments of its own.
inline Result run(const std::string& arguments, const std::string& under = "") {
  const TempDir folder;
  const std::string out = folder / "stdout", err = folder / "stderr";
  const std::string command = under + " '" + TRITGRAD_BINARY + "' " + arguments + " >'" + out +
                              "' 2>'" + err + "' </dev/null";
  const int status = std::system(command.c_str());
  return {WEXITSTATUS(status), read_text(out), read_text(err)};
}

// Returns the words before a command that run it within a folder.
inline std::string from_folder(const std::filesystem::path& folder) {
  return "cd '" + folder.string() + "' &&";
}

// Refused: exit code 1, nothing on stdout, one line on stderr that contains `part`.
inline void check_refused(const std::string& arguments, const std::string& part,
                          const std::string& under = "") {
  CAPTURE(arguments);
  const Result result = run(arguments, under);
  CAPTURE(result.err);
  CHECK(result.exit_code == 1);
  CHECK(result.out.empty());
  CHECK(result.err.starts_with("tritgrad: "));
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  CHECK(result.err.find(part) != std::string::npos);
}

}  // namespace tritgrad::test
