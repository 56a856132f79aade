// The one file that knows oneDNN. TRITGRAD_WITH_ONEDNN says that there is one that stays on one
// thread.
#include "ops/products/dense_product.h"

#ifdef TRITGRAD_WITH_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "engine/check.h"
#include "engine/memory/parallel.h"
#include "ops/kernels/targets.h"

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

std::atomic<bool> g_allowed{true};

// Code for floats that oneDNN has.
enum class FloatCode { kOther, kAvx2, kAvx512 };

FloatCode code_of(const KernelTables& table) {
  const std::string_view name = table.name;
  return name.starts_with("avx512") ? FloatCode::kAvx512
         : name == "avx2"           ? FloatCode::kAvx2
                                    : FloatCode::kOther;
}

// oneDNN takes a limit only before its first use in the process, so what it has in the end is asked
// for: somebody else may have used it before.
FloatCode fix_onednn() {
  const FloatCode wanted =
      code_of(choose_kernels(supported_kernels(), std::getenv("TRITGRAD_ISA")));
  if (wanted == FloatCode::kOther) return wanted;
  dnnl_set_max_cpu_isa(wanted == FloatCode::kAvx512 ? dnnl_cpu_isa_avx512_core : dnnl_cpu_isa_avx2);
  const unsigned isa = dnnl_get_effective_cpu_isa();
  const auto has = [isa](unsigned other) { return (isa & other) == other; };
  return has(dnnl_cpu_isa_avx512_core) ? FloatCode::kAvx512
         : has(dnnl_cpu_isa_avx2)      ? FloatCode::kAvx2
                                       : FloatCode::kOther;
}

bool onednn_serves(const KernelTables& table) {
  const FloatCode needed = code_of(table);
  if (needed == FloatCode::kOther || !g_allowed.load(std::memory_order_relaxed)) return false;
  static const FloatCode fixed = fix_onednn();
  return needed == fixed;
}

void multiply_by_onednn(const GemmShape& s, const float* a, std::int64_t lda, const float* b,
                        std::int64_t ldb, float* c, std::int64_t ldc) {
  const dnnl_status_t status =
      dnnl_sgemm(s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', s.m, s.n, s.k, 1.0f, a, lda,
                 b, ldb, s.accumulate ? 1.0f : 0.0f, c, ldc);
  check(status == dnnl_success, "dense_product: oneDNN refused a product of ", s.m, " x ", s.n,
        " x ", s.k, " with status ", static_cast<int>(status),
        status == dnnl_out_of_memory ? "; it found no memory, free some" : "");
}

#else

bool onednn_serves(const KernelTables&) { return false; }

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

void allow_onednn([[maybe_unused]] bool allowed) {
#ifdef TRITGRAD_WITH_ONEDNN
  g_allowed.store(allowed, std::memory_order_relaxed);
#endif
}

}  // namespace tritgrad
