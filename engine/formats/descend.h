// The parts that updates of several formats have in common.
#pragma once

#include <array>

#include "engine/formats/format.h"
#include "engine/formats/update_noise.h"
#include "engine/kernels/products.h"
#include "engine/kernels/reductions.h"
#include "engine/kernels/updates.h"

namespace tritgrad {

// Returns the n numbers of a direction; `scratch` has room for them.
inline const float* as_floats(const Direction& direction, std::int64_t n, float* scratch) {
  const float factor = direction.factor;
  if (direction.floats != nullptr && !direction.signs && factor == 1.0f) return direction.floats;
  if (direction.floats != nullptr) {
    const float* numbers = direction.floats;
    if (direction.signs) {
      kernels().updates.sign(scratch, numbers, n);
      numbers = scratch;
    }
    for (std::int64_t i = 0; i < n; ++i) scratch[i] = factor * numbers[i];
  } else if (direction.signs) {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int32_t number = direction.sums[i] - direction.correction;
      scratch[i] = factor * static_cast<float>((number > 0) - (number < 0));
    }
  } else {
    kernels().products.rescale_sums(scratch, n, direction.sums, n, &direction.correction, &factor,
                                    1, n);
  }
  return scratch;
}

// Returns DirectionRows::squares of one row.
inline double sum_of_squares(const Direction& direction, std::int64_t n) {
  if (direction.floats != nullptr) return kernels().reductions.sum_of_squares(direction.floats, n);
  return static_cast<double>(
      kernels().reductions.sum_of_squared_sums(direction.sums, direction.correction, n));
}

// The update of formats without integer arithmetic: decode, subtract, encode.
template <typename F>
void descend_master(F& format, const Block& block, const float* direction, const Descent& descent) {
  std::array<float, kBlock> master;
  format.decode_master(block, master.data());
  kernels().updates.descend(master.data(), direction, descent.lr, block.n);
  format.encode(block, master.data(), descent.key);
}

// Updates a block like descend_master(), with error feedback.
template <typename F>
void descend_with_feedback(F& format, const Block& block, const float* direction,
                           const Descent& descent, const ErrorFeedback& feedback) {
  std::array<float, kBlock> wanted, stored;
  format.decode_master(block, wanted.data());
  kernels().updates.descend(wanted.data(), direction, descent.lr, block.n);
  format.encode(block, wanted.data(), descent.key);
  format.decode_master(block, stored.data());
  kernels().updates.carry_error(feedback.momentum, wanted.data(), stored.data(), feedback.gain,
                                feedback.alpha, feedback.rescale, block.n);
}

// The update of formats that take the floats of one block: blocks one after the other, directions
// written as floats. Formats that compare masters before and after have descend_from().
template <typename F>
FlipCounts descend_by_floats(F& format, const BlockUpdate& update) {
  FlipCounts counts;
  std::array<float, kBlock> numbers;
  for (std::size_t i = 0; i < update.directions.size(); ++i) {
    const Block block = update.blocks[i];
    const Direction& direction = update.directions[i];
    if (update.squares != nullptr) update.squares[i] = sum_of_squares(direction, block.n);
    const float* floats = as_floats(direction, block.n, numbers.data());
    if (update.feedback != nullptr) {
      descend_with_feedback(format, block, floats, update.descent, *update.feedback);
    } else if constexpr (requires { format.descend_from(block, floats, floats, update.descent); }) {
      std::array<float, kBlock> decoded;
      if (update.masters == nullptr) format.decode_master(block, decoded.data());
      const float* masters = update.masters == nullptr ? decoded.data() : update.masters;
      format.descend_from(block, masters, floats, update.descent);
    } else {
      counts += format.descend(block, floats, update.descent);
    }
  }
  return counts;
}

// Tells how the update of a block of a fixed-point format is rounded to whole levels, by noise
// spread over the steps (engine/formats/update_noise.h), which it points to in `descent`, or to
// nearest; `cols` is the matrix's, which tells a block's noise.
inline LevelRounding update_rounding(const Block& block, std::int64_t cols, const Descent& descent,
                                     int levels_per_unit, int limit, Rounding rounding) {
  const auto scale = static_cast<float>(static_cast<double>(descent.lr) * levels_per_unit);
  if (rounding != Rounding::kStochastic) return {scale, limit, nullptr};
  return {scale, limit, descent.noise.data(),
          as_offset(update_noise_offset(descent.key, block_number(block, cols)))};
}
// Deleted, as the result would point to a Descent that is gone.
LevelRounding update_rounding(const Block&, std::int64_t, Descent&&, int, int, Rounding) = delete;
static_assert(kBlock == static_cast<std::int64_t>(UpdateNoiseTable::kPlaces));

// That of the first `count` blocks of a series.
using SeriesRounding = std::array<LevelRounding, kMostBlocksAtOnce>;
inline SeriesRounding update_rounding(const BlockSeries& series, std::size_t count,
                                      std::int64_t cols, const Descent& descent,
                                      int levels_per_unit, int limit, Rounding rounding) {
  SeriesRounding roundings;
  for (std::size_t i = 0; i < count; ++i) {
    roundings[i] = update_rounding(series[i], cols, descent, levels_per_unit, limit, rounding);
  }
  return roundings;
}
SeriesRounding update_rounding(const BlockSeries&, std::size_t, std::int64_t, Descent&&, int, int,
                               Rounding) = delete;

}  // namespace tritgrad
