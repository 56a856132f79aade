// Quotients and square roots without the divider, for AVX-512 before VBMI and with AMX.
//
// A Skylake's divider is busy with a quotient of two vectors for 10 cycles, with a root for 12,
// while the units for products idle. So codecs give every other vector to the divider and compute
// the ones between with products: an estimate of 14 bits, a step of Newton's, and a last step from
// the exact remainder. (Chains of products are long: where much else depends on them, as in
// adamw(), the processor cannot hold enough of them at once, and the divider alone is faster.)
//
// The last place may differ from what the divider gives, in rare cases. They do not reach the
// codes: tests/ops/kernels/test_kernel_codecs.cpp tries every number near enough to where a code
// changes. In AVX2 the divider is as fast. On the one processor with VBMI that was measured, a Zen
// 5, a quotient takes 2.5 cycles and a root 4.4, fewer than their products: there codecs leave both
// to the divider, and are up to twice as fast. Processors with AMX are Intel's, and products beside
// their divider make codecs 1.3 to 1.6 times as fast. (Intel's with VBMI and no AMX do without; the
// bits are the same.)
#pragma once

#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

#if defined(__AVX512F__) && (!defined(__AVX512VBMI__) || defined(TRITGRAD_TILES))

// a / b, b >= 1. Exact for integers below 256 in size: before the last rounding the error is below
// 2^-22 of a place, while such a quotient is at least 2^-9 of a place away from where rounding
// turns.
inline F32 fused_quotient(const F32& a, const F32& b) {
  __m512 inverse = _mm512_rcp14_ps(b);
  inverse = _mm512_fmadd_ps(_mm512_fnmadd_ps(b, inverse, F32(1.0f)), inverse, inverse);
  const __m512 q = _mm512_mul_ps(a, inverse);
  return _mm512_fmadd_ps(_mm512_fnmadd_ps(b, q, a), inverse, q);
}

// The square root of x > 0; NaN for 0.
inline F32 fused_root(const F32& x) {
  const __m512 inverse = _mm512_rsqrt14_ps(x);
  __m512 root = _mm512_mul_ps(x, inverse);
  __m512 half = _mm512_mul_ps(inverse, F32(0.5f));
  const __m512 error = _mm512_fnmadd_ps(root, half, F32(0.5f));
  root = _mm512_fmadd_ps(root, error, root);
  half = _mm512_fmadd_ps(half, error, half);
  return _mm512_fmadd_ps(_mm512_fnmadd_ps(root, root, x), half, root);
}

#else

inline F32 fused_quotient(const F32& a, const F32& b) { return a / b; }
inline F32 fused_root(const F32& x) { return sqrt(x); }

#endif

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
