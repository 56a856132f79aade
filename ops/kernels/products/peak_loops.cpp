#include "ops/kernels/products/peak_loops.h"

#include <string_view>

#include "engine/kernels/kernel_table.h"

namespace tritgrad {

const PeakLoops& peak_loops() {
#ifndef TRITGRAD_PORTABLE
  const std::string_view name = kernels().name;
  if (name == "avx2") return avx2::kPeakLoops;
  if (name == "avx512") return avx512::kPeakLoops;
  if (name == "avx512vnni") return avx512vnni::kPeakLoops;
  if (name == "avx512vbmi") return avx512vbmi::kPeakLoops;
  if (name == "avx512amx") return avx512amx::kPeakLoops;
#endif
  return baseline::kPeakLoops;
}

PeakLoop bf16_peak_loop() {
#ifndef TRITGRAD_PORTABLE
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx512bf16")) {
    return {"this processor has no bf16 instruction", nullptr};
  }
  const std::string_view name = kernels().name;
  if (name.starts_with("avx512")) return avx512bf16::kPeakLoop;
#endif
  return {"the kernels in use are below AVX-512", nullptr};
}

}  // namespace tritgrad
