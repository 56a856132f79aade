// Whether a gradient may be used at all.
#pragma once

#include "engine/parameter.h"

namespace tritgrad {

// Of a parameter that has a gradient, whatever form it has.
bool gradient_is_finite(const Parameter& parameter);

}  // namespace tritgrad
