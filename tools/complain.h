// How the program says that it cannot go on.
#pragma once

#include <string>

namespace tritgrad {

// One sentence on standard error, in one piece, so that those of several ranks stay apart; names
// the rank where there are several. Returns the exit code of a program that failed.
int complain(const std::string& sentence);

}  // namespace tritgrad
