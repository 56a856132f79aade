// The small data sets that are part of the library (engine/data/README.md has sources and licence).
#pragma once

#include <string>

#include "engine/data/dataset.h"

namespace tritgrad {

// "iris", "wdbc", "digits" or "wine". Throws for other names.
Dataset builtin_dataset(const std::string& name);

}  // namespace tritgrad
