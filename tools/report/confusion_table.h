// The confusion table of a run as people read it on a terminal.
#pragma once

#include <string>

#include "models/training/confusion.h"

namespace tritgrad {

// Returns a line for each class that has rows: its rows, its recall in %, and how many rows are
// taken for each class; of more than ten classes, the wrong class that most are taken for. Every
// line ends in a newline.
std::string confusion_table(const Confusion& confusion);

}  // namespace tritgrad
