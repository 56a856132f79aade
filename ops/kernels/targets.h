// What the objects of ops/kernels/ offer each other; everybody else uses
// engine/kernels/kernel_table.h.
#pragma once

#include "engine/kernels/kernel_table.h"

namespace tritgrad {

// Eigen for the instruction set that every x86-64 processor has.
namespace baseline {
void gemm(const GemmShape& shape, const float* a, std::int64_t lda, const float* b,
          std::int64_t ldb, float* c, std::int64_t ldc);
}

extern const KernelTable kReferenceKernels;
#ifndef TRITGRAD_PORTABLE
namespace avx2 {
extern const KernelTable kKernels;
}
namespace avx512 {
extern const KernelTable kKernels;
}
namespace avx512vnni {
extern const KernelTable kKernels;
}
namespace avx512vbmi {
extern const KernelTable kKernels;
}
namespace avx512amx {
extern const KernelTable kKernels;
}
#endif

}  // namespace tritgrad
