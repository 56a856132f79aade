#include "ops/products/dense_product.h"

#ifdef TRITGRAD_WITH_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

#include <algorithm>

#include "engine/check.h"
#include "engine/memory/parallel.h"
#include "ops/kernels/products/onednn.h"

namespace tritgrad {
namespace {

// Sides of pieces of C. gemm packs into the stack (see there), oneDNN into the heap.
constexpr std::int64_t kGemmPiece = 256;
[[maybe_unused]] constexpr std::int64_t kOnednnPiece = 1024;

// Calls multiply(piece, a, lda, b, ldb, c, ldc) for pieces of C that bound its working memory.
template <typename Multiply>
void in_pieces(std::int64_t side, const GemmShape& shape, const float* a, std::int64_t lda,
               const float* b, std::int64_t ldb, float* c, std::int64_t ldc,
               const Multiply& multiply) {
  for (std::int64_t i = 0; i < shape.m; i += side) {
    for (std::int64_t j = 0; j < shape.n; j += side) {
      GemmShape piece = shape;
      piece.m = std::min(side, shape.m - i);
      piece.n = std::min(side, shape.n - j);
      multiply(piece, a + (shape.transpose_a ? i : i * lda), lda,
               b + (shape.transpose_b ? j * ldb : j), ldb, c + i * ldc + j, ldc);
    }
  }
}

#ifdef TRITGRAD_WITH_ONEDNN

void multiply_by_onednn(const GemmShape& s, const float* a, std::int64_t lda, const float* b,
                        std::int64_t ldb, float* c, std::int64_t ldc) {
  const dnnl_status_t status =
      dnnl_sgemm(s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', s.m, s.n, s.k, 1.0f, a, lda,
                 b, ldb, s.accumulate ? 1.0f : 0.0f, c, ldc);
  check(status == dnnl_success, "dense_product: oneDNN refused a product of ", s.m, " x ", s.n,
        " x ", s.k, " with status ", static_cast<int>(status),
        status == dnnl_out_of_memory ? "; it found no memory, free some" : "");
}

#endif

}  // namespace

void dense_product(const GemmShape& shape, const float* a, std::int64_t lda, const float* b,
                   std::int64_t ldb, float* c, std::int64_t ldc) {
  const KernelTables& table = kernels();
#ifdef TRITGRAD_WITH_ONEDNN
  // Without an inner dimension there is nothing to multiply, but perhaps C to clear.
  if (shape.k > 0 && onednn_serves(table)) {
    const OnThisThread held;
    in_pieces(kOnednnPiece, shape, a, lda, b, ldb, c, ldc, multiply_by_onednn);
    return;
  }
#endif
  in_pieces(kGemmPiece, shape, a, lda, b, ldb, c, ldc, table.products.gemm);
}

const char* dense_product_library() { return onednn_serves(kernels()) ? "oneDNN" : "Eigen"; }

}  // namespace tritgrad
