// Running another program without a shell.
#pragma once

#include <string>
#include <vector>

namespace tritgrad {

struct ProgramResult {
  int exit_code = 0;
  std::string output;  // what it wrote, both streams together
};

// Looks `arguments[0]` up on PATH, runs it in `folder`, waits for it. Standard input is empty.
// Throws Error when the program is not there or cannot be started; a program that fails is no error here.
ProgramResult run_program(const std::vector<std::string>& arguments, const std::string& folder);

}  // namespace tritgrad
