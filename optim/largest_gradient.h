// The largest magnitude in the gradient of a parameter, for rules that read it.
#pragma once

#include "engine/parameter.h"

namespace tritgrad {

// The parameter has a gradient; one that is computed when read is computed for this.
float largest_gradient(const Parameter& parameter);

}  // namespace tritgrad
