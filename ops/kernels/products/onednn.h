// When oneDNN computes in place of the kernels, for the files that know it: onednn.cpp,
// dense_product.cpp and dense_convolution.cpp. They alone are compiled with TRITGRAD_WITH_ONEDNN,
// which says that there is one that stays on one thread.
#pragma once

#include "engine/kernels/kernels.h"

namespace tritgrad {

// Code for floats that oneDNN has.
enum class FloatCode { kOther, kAvx2, kAvx512 };

// Returns the code of oneDNN where it is allowed and has the instruction set of `table`, else
// kOther. The first call in the process fixes the instruction set (ops/products/dense_product.h).
FloatCode onednn_code(const KernelTables& table);

inline bool onednn_serves(const KernelTables& table) {
  return onednn_code(table) != FloatCode::kOther;
}

}  // namespace tritgrad
