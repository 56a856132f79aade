// The choice of a table as a pure function, apart from the machine.
#pragma once

#include <span>

#include "engine/kernel_table.h"

namespace tritgrad {

// `supported` goes from the reference to the best and is not empty. `wanted` is the value of TRITGRAD_ISA
// (null or empty: the best). A name above the best that is supported gives the best; an unknown one
// throws Error.
const KernelTable* choose_kernels(std::span<const KernelTable* const> supported, const char* wanted);

}  // namespace tritgrad
