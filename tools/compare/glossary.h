// What the words of a report mean.
#pragma once

#include <vector>

#include "tools/compare/record.h"
#include "tools/report/page.h"

namespace tritgrad {

Facts glossary(const std::vector<ComparisonRecord>& records);

}  // namespace tritgrad
