// Measurements scatter to one side; their middle is what counts.
#pragma once

#include <vector>

namespace tritgrad {

// The middle one, or the mean of the two in the middle; NaN for none. Values that are not finite
// count as larger than all others.
double median(std::vector<double> values);

}  // namespace tritgrad
