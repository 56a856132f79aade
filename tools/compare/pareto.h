// Which recipes give most for their bytes.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/compare/summary.h"

namespace tritgrad {

// Places in comparison.recipes for which no other has a higher mean accuracy at as few bytes, or as
// high a one at fewer, by rising bytes. Bytes count as they are printed, in hundredths. Recipes
// without accuracy are left out.
std::vector<std::size_t> pareto_front(const Comparison& comparison);

}  // namespace tritgrad
