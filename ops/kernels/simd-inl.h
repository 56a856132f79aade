// The few vector verbs that the kernels use, in xsimd's terms, for the instruction set of the including
// file. A change of xsimd's version touches this file only. (xsimd 8.1 has no integer widening and no
// float-to-double conversion: such loops are written plainly and left to the compiler.)
#pragma once

#include <cstdint>
#include <xsimd/xsimd.hpp>

namespace tritgrad::TRITGRAD_TARGET {

using Floats = xsimd::batch<float, TRITGRAD_XSIMD_ARCH>;
inline constexpr std::int64_t kFloats = static_cast<std::int64_t>(Floats::size);

inline Floats load(const float* x) { return Floats::load_unaligned(x); }
inline void store(float* x, const Floats& value) { value.store_unaligned(x); }

// Calls wide(i) for whole vectors and narrow(i) for the elements that are left.
template <typename Wide, typename Narrow>
inline void for_vectors(std::int64_t n, Wide&& wide, Narrow&& narrow) {
  std::int64_t i = 0;
  for (; i + kFloats <= n; i += kFloats) wide(i);
  for (; i < n; ++i) narrow(i);
}

}  // namespace tritgrad::TRITGRAD_TARGET
