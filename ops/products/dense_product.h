// Dense products of any size: by oneDNN where the library was built with it, else by the gemm of
// the kernel table, which is Eigen's.
//
// Like gemm, a product runs on the calling thread and gives the same bits for any number of threads
// and any place in memory on one instruction set. oneDNN and Eigen add in different orders, so a
// library built without oneDNN gives other bits, within the same bound.
//
// The instruction set of oneDNN is fixed at its first product, to the one that the kernels were
// chosen for at start: the processor's best, lowered by TRITGRAD_ISA (from avx512 on all are
// one, floats know no difference). While use_kernels() has put other kernels in place, and always
// with the reference, products are those of the kernels' gemm.
#pragma once

#include "engine/kernels/products.h"

namespace tritgrad {

// C[m x n] = op(A)[m x k] op(B)[k x n] (+ C), row-major with leading dimensions. The gemm takes
// less than 2 MiB of stack and no heap. oneDNN takes less than 4 MiB for packed operands from the
// heap and gives it back before it returns; the ledger does not see it. Throws Error when the heap
// is exhausted.
void dense_product(const GemmShape& shape, const float* a, std::int64_t lda, const float* b,
                   std::int64_t ldb, float* c, std::int64_t ldc);

// Names who computes products with the kernels in use: "oneDNN" or "Eigen".
const char* dense_product_library();

// allow_onednn(false) leaves products to the kernels' gemm from now on; for tests and measurements.
void allow_onednn(bool allowed);

}  // namespace tritgrad
