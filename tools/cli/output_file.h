// Files that a command writes beside what it prints.
#pragma once

#include <string>

namespace tritgrad {

enum class Writing {
  kAtOnce,   // a new file replaces the old one, so its folder must be writable
  kInPlace,  // what is there is written over
};
// Refuses a path that cannot be written before any work is done for it. `option` begins the
// message.
void check_writable(const char* option, const std::string& path,
                    Writing writing = Writing::kAtOnce);

// Writes `text` and a newline to the file, or to standard output for "-"; does nothing for "".
void write_json(const std::string& path, const std::string& text);

}  // namespace tritgrad
