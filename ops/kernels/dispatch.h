// How a kernel table is chosen; apart from the processor and the environment, so that it can be
// tested.
#pragma once

#include <span>

#include "engine/kernels/kernel_table.h"

namespace tritgrad {

// The best of `supported` (in rising order, the reference first) that is not above `requested`,
// which is the value of TRITGRAD_ISA or nullptr when it is not set. Throws Error for an unknown
// name.
const KernelTable& choose_kernels(std::span<const KernelTable* const> supported,
                                  const char* requested);

}  // namespace tritgrad
