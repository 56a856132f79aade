// Dense products by Eigen, compiled once per target: TRITGRAD_TARGET names the namespace, and Eigen
// is renamed to eigen_<target> so that no two targets share a template instance.
//
// One product runs on one thread and the order of its sums depends on the shape alone: the cache
// sizes that steer Eigen's blocking are fixed here instead of read from the machine.
#pragma once

#define EIGEN_DONT_PARALLELIZE
#define EIGEN_MAX_ALIGN_BYTES 64
// Packed panels live on the stack. With m, n <= 256 the largest is 256 x 512 floats (depth 512
// follows from the level 1 cache below and the smallest register block, 12 x 4), half of this
// limit; so such a product never touches the heap.
#define EIGEN_STACK_ALLOCATION_LIMIT (1 << 20)

#include <Eigen/Core>
#include <algorithm>

#include "ops/kernels/targets.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// Matrix-vector products copy a strided vector to the stack, k floats long. Cutting k keeps that
// bounded.
constexpr std::int64_t kMaxDepth = 16384;

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Stride = Eigen::OuterStride<>;
using Input = Eigen::Map<const RowMajor, Eigen::Unaligned, Stride>;
using Output = Eigen::Map<RowMajor, Eigen::Unaligned, Stride>;

bool fix_cache_sizes() {
  Eigen::setCpuCacheSizes(32 << 10, 1 << 20, 4 << 20);
  return true;
}

// C += op(A) op(B) for one cut of k.
void add_product(const GemmShape& s, const float* a, std::int64_t lda, const float* b,
                 std::int64_t ldb, Output& c) {
  const Input stored_a(a, s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k, Stride(lda));
  const Input stored_b(b, s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n, Stride(ldb));
  if (s.transpose_a && s.transpose_b) {
    c.noalias() += stored_a.transpose() * stored_b.transpose();
  } else if (s.transpose_a) {
    c.noalias() += stored_a.transpose() * stored_b;
  } else if (s.transpose_b) {
    c.noalias() += stored_a * stored_b.transpose();
  } else {
    c.noalias() += stored_a * stored_b;
  }
}

}  // namespace

void gemm(const GemmShape& shape, const float* a, std::int64_t lda, const float* b,
          std::int64_t ldb, float* c, std::int64_t ldc) {
  [[maybe_unused]] static const bool cache_sizes_fixed = fix_cache_sizes();
  if (shape.m <= 0 || shape.n <= 0) return;
  Output product(c, shape.m, shape.n, Stride(ldc));
  if (!shape.accumulate) product.setZero();
  GemmShape cut = shape;
  for (std::int64_t k = 0; k < shape.k; k += kMaxDepth) {
    cut.k = std::min(kMaxDepth, shape.k - k);
    add_product(cut, a + k * (shape.transpose_a ? lda : 1), lda,
                b + k * (shape.transpose_b ? 1 : ldb), ldb, product);
  }
}

}  // namespace tritgrad::TRITGRAD_TARGET
