// Dense products by Eigen, compiled once for each instruction set.
//
// The including file renames Eigen's namespace (#define Eigen eigen_NAME), because Eigen's templates would
// otherwise share symbols between instruction sets. Threads are ours (engine/parallel.h), the alignment is
// fixed because it would change with the flags, and the cache sizes are fixed so that the order of
// summation does not depend on the machine.
#pragma once

#define EIGEN_DONT_PARALLELIZE
#define EIGEN_MAX_ALIGN_BYTES 64
#define EIGEN_MPL2_ONLY
// Packing buffers live on the stack: a warm step must not touch the heap. Panels of 256 x 512 floats.
#define EIGEN_STACK_ALLOCATION_LIMIT (2 * 1024 * 1024)

#include <Eigen/Core>

#include "engine/kernel_table.h"

namespace tritgrad::TRITGRAD_TARGET {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Stride = Eigen::OuterStride<>;
using Const = Eigen::Map<const Matrix, Eigen::Unaligned, Stride>;

inline void fix_cache_sizes() {
  static const bool done = [] {
    Eigen::setCpuCacheSizes(32 * 1024, 256 * 1024, 1024 * 1024);
    return true;
  }();
  static_cast<void>(done);
}

inline void gemm(const GemmShape& s, const float* a, std::int64_t lda, const float* b,
                 std::int64_t ldb, float* c, std::int64_t ldc) {
  if (s.m == 0 || s.n == 0) return;
  Eigen::Map<Matrix, Eigen::Unaligned, Stride> out(c, s.m, s.n, Stride(ldc));
  if (s.k == 0) {
    if (!s.accumulate) out.setZero();
    return;
  }
  fix_cache_sizes();
  const Const left(a, s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k, Stride(lda));
  const Const right(b, s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n, Stride(ldb));
  if (!s.accumulate) out.setZero();
  if (s.transpose_a && s.transpose_b) {
    out.noalias() += left.transpose() * right.transpose();
  } else if (s.transpose_a) {
    out.noalias() += left.transpose() * right;
  } else if (s.transpose_b) {
    out.noalias() += left * right.transpose();
  } else {
    out.noalias() += left * right;
  }
}

}  // namespace tritgrad::TRITGRAD_TARGET
