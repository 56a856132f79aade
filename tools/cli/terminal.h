// What lines that are drawn over and over need to know of a terminal.
#pragma once

#include <cstdio>

namespace tritgrad {

// Clears the line and goes to its start.
inline constexpr const char* kEraseLine = "\r\x1b[K";

// Whether `out` is a terminal.
bool is_terminal(std::FILE* out);

// Cells that a line on `out` may fill; 79 where that is unknown. The last cell of a terminal's line
// stays free: writing there makes some terminals wrap.
int line_width(std::FILE* out);

}  // namespace tritgrad
