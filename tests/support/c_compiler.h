// Compiles a program in C with every compiler that there is, at -O0 and -O3, with every warning an
// error.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/readers.h"
#include "tests/support/support_files.h"

namespace tritgrad::test {

// Returns which of cc and clang are installed. Where one is not, skip_or_fail() says so.
inline std::vector<std::string> c_compilers() {
  std::vector<std::string> found;
  for (const std::string name : {"cc", "clang"}) {
    const std::string ask = "command -v " + name + " >/dev/null 2>&1";
    if (std::system(ask.c_str()) == 0) {
      found.push_back(name);
    } else {
      skip_or_fail(name);
    }
  }
  return found;
}

// Returns a command for each way to make the program.
inline std::vector<std::string> compile_commands(const std::string& source,
                                                 const std::string& program) {
  std::vector<std::string> commands;
  for (const std::string& compiler : c_compilers()) {
    for (const char* level : {"-O0", "-O3"}) {
      commands.push_back(compiler + " -std=c99 -pedantic -Wall -Wextra -Werror -ffp-contract=off " +
                         level + " '" + source + "' -o '" + program + "' -lm");
    }
  }
  return commands;
}

}  // namespace tritgrad::test
