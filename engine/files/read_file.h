// Whole files in memory.
#pragma once

#include <string>

namespace tritgrad {

// The bytes of a regular file. Throws Error with the path and the system's reason.
std::string read_file(const std::string& path);

}  // namespace tritgrad
