// How the program says that it cannot go on, or that something is amiss.
#pragma once

#include <string>

namespace tritgrad {

// One sentence on standard error, in one piece, so that those of several ranks stay apart; names
// the rank where there are several. Returns the exit code of a program that failed.
int complain(const std::string& sentence);

// "warning: recipe 'NAME': SENTENCE" on standard error, in one piece.
void warn_of_recipe(const std::string& name, const std::string& sentence);

}  // namespace tritgrad
