// The comparison of recipes as a table for the terminal.
#pragma once

#include <string>
#include <vector>

#include "tools/run_result.h"

namespace tritgrad {

std::string render_compare_table(const std::vector<RunResult>& runs, const std::string& baseline);

}  // namespace tritgrad
