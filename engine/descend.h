// What the updates of several formats have in common.
#pragma once

#include <array>

#include "engine/format.h"
#include "engine/kernel_table.h"

namespace tritgrad {

// The update of formats without integer arithmetic: decode, subtract, encode.
template <typename F>
void descend_master(F& format, const Block& block, const float* direction, const Descent& descent) {
  std::array<float, kBlock> master;
  format.decode_master(block, master.data());
  kernels().descend(master.data(), direction, descent.lr, block.n);
  format.encode(block, master.data(), descent.key);
}

// The update of fixed-point formats in whole levels, -lr * direction * levels_per_unit rounded as
// asked; `cols` is the matrix's, which tells a block's noise.
using Levels = std::array<std::int16_t, kBlock>;
inline Levels quantize_update(const Block& block, std::int64_t cols, const float* direction,
                              const Descent& descent, int levels_per_unit, int limit,
                              Rounding rounding) {
  Levels levels;
  std::array<std::uint16_t, kBlock> noise;
  const bool stochastic = rounding == Rounding::kStochastic;
  if (stochastic) {
    kernels().random_u16(noise.data(), block.n, descent.key, noise_index(block, cols));
  }
  const double scale = static_cast<double>(descent.lr) * static_cast<double>(levels_per_unit);
  kernels().quantize_levels(levels.data(), direction, static_cast<float>(scale), limit,
                            stochastic ? noise.data() : nullptr, block.n);
  return levels;
}

}  // namespace tritgrad
