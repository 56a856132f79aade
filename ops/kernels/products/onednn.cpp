#include "ops/kernels/products/onednn.h"

#ifdef TRITGRAD_WITH_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "ops/kernels/targets.h"
#include "ops/products/dense_product.h"

namespace tritgrad {

#ifdef TRITGRAD_WITH_ONEDNN

namespace {

std::atomic<bool> g_allowed{true};

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

}  // namespace

FloatCode onednn_code(const KernelTables& table) {
  const FloatCode needed = code_of(table);
  if (needed == FloatCode::kOther || !g_allowed.load(std::memory_order_relaxed)) {
    return FloatCode::kOther;
  }
  static const FloatCode fixed = fix_onednn();
  return needed == fixed ? fixed : FloatCode::kOther;
}

void allow_onednn(bool allowed) { g_allowed.store(allowed, std::memory_order_relaxed); }

#else

FloatCode onednn_code(const KernelTables&) { return FloatCode::kOther; }
void allow_onednn(bool) {}

#endif

}  // namespace tritgrad
