// Flags: none beyond the baseline of x86-64.
#define Eigen eigen_baseline
#define TRITGRAD_TARGET target_baseline
#include "ops/kernels/gemm-inl.h"
#include "ops/kernels/tables.h"

namespace tritgrad {

void baseline_gemm(const GemmShape& shape, const float* a, std::int64_t lda, const float* b,
                   std::int64_t ldb, float* c, std::int64_t ldc) {
  target_baseline::gemm(shape, a, lda, b, ldb, c, ldc);
}

}  // namespace tritgrad
