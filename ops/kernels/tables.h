// The tables that are compiled in: one function for each instruction set.
#pragma once

#include "engine/kernel_table.h"

namespace tritgrad {

const KernelTable& reference_kernels();
#ifndef TRITGRAD_PORTABLE
const KernelTable& avx2_kernels();
const KernelTable& avx512_kernels();
#endif

// The reference table's product: Eigen compiled for the baseline instruction set.
void baseline_gemm(const GemmShape& shape, const float* a, std::int64_t lda, const float* b,
                   std::int64_t ldb, float* c, std::int64_t ldc);

}  // namespace tritgrad
