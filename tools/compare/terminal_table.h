// The comparison of recipes as a table for the terminal.
#pragma once

#include <string>

#include "tools/compare/record.h"

namespace tritgrad {

std::string render_terminal_table(const ComparisonRecord& record);

}  // namespace tritgrad
