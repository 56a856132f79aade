// Compiler flags: those of target_avx512.cpp and -mavx512bf16
// The one use of bf16 instructions: how fast they would be.
#define TRITGRAD_TARGET avx512bf16
#include <immintrin.h>

#include "ops/kernels/products/peak_loops.h"
#include "ops/kernels/products/register_loop-inl.h"

namespace tritgrad::avx512bf16 {
namespace {

std::int64_t run(std::int64_t rounds) {
  constexpr std::int64_t kProducts = 32;
  const __m512bh ones = _mm512_cvtne2ps_pbh(_mm512_set1_ps(1.0f), _mm512_set1_ps(1.0f));
  return 2 * kProducts *
         run_in_registers(
             rounds, _mm512_set1_ps(0.0f), ones, ones,
             [](__m512 sum, __m512bh a, __m512bh b) { return _mm512_dpbf16_ps(sum, a, b); });
}

}  // namespace

const PeakLoop kPeakLoop = {"vdpbf16ps", run};

}  // namespace tritgrad::avx512bf16
