// Words of commands that users are told to give.
#pragma once

#include <string>

namespace tritgrad {

// The word as a shell wants it: in quotes where it must be.
std::string shell_quoted(const std::string& word);

}  // namespace tritgrad
