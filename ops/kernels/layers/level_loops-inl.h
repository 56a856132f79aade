// The loops of levels, images of 16-bit numbers, in plain scalar form that the compiler vectorises.
//
// They are compiled once per target, and once as the specification (reference.cpp). The contracts
// are those of engine/kernels/layers.h.
#pragma once

#include <cstdint>

#include "engine/kernels/layers.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

void narrow_sums(std::int16_t* __restrict levels, std::int64_t ld_levels,
                 const std::int32_t* __restrict sums, std::int64_t ld_sums,
                 const std::int32_t* __restrict corrections, int shift, std::int64_t rows,
                 std::int64_t n) {
  const std::int32_t half = (1 << shift) >> 1;
  for (std::int64_t r = 0; r < rows; ++r, levels += ld_levels, sums += ld_sums) {
    const std::int32_t added = half - corrections[r];
    for (std::int64_t i = 0; i < n; ++i) {
      levels[i] = static_cast<std::int16_t>((sums[i] + added) >> shift);
    }
  }
}

void add_level_sums(std::int64_t* __restrict sums, std::int64_t* __restrict squares,
                    const std::int16_t* __restrict levels, std::int64_t ld, std::int64_t rows,
                    std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r, levels += ld) {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int32_t level = levels[i];
      sums[i] += level;
      squares[i] += level * level;
    }
  }
}

void widen_level_range(std::int16_t* __restrict least, std::int16_t* __restrict most,
                       const std::int16_t* __restrict levels, std::int64_t ld, std::int64_t rows,
                       std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r, levels += ld) {
    for (std::int64_t i = 0; i < n; ++i) {
      least[i] = levels[i] < least[i] ? levels[i] : least[i];
      most[i] = levels[i] > most[i] ? levels[i] : most[i];
    }
  }
}

void levels_to_float(float* __restrict out, const std::int16_t* __restrict levels, float factor,
                     std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = factor * static_cast<float>(levels[i]);
}

// The largest of four levels, and the bit of the first that is; levels that are to be the smallest
// are turned over, which makes a larger one of a smaller one.
void pool_channels(std::int16_t* __restrict y, std::int16_t* __restrict winners,
                   const std::int16_t* __restrict x0, const std::int16_t* __restrict x1,
                   const std::int16_t* __restrict x2, const std::int16_t* __restrict x3,
                   const std::int16_t* __restrict turns, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int16_t turn = turns[i];
    const auto a = static_cast<std::int16_t>(x0[i] ^ turn);
    const auto b = static_cast<std::int16_t>(x1[i] ^ turn);
    const auto c = static_cast<std::int16_t>(x2[i] ^ turn);
    const auto d = static_cast<std::int16_t>(x3[i] ^ turn);
    const std::int16_t above = a > b ? a : b, below = c > d ? c : d;
    const std::int16_t largest = above > below ? above : below;
    y[i] = static_cast<std::int16_t>(largest ^ turn);
    std::int16_t winner = c == largest ? std::int16_t{4} : std::int16_t{8};
    winner = b == largest ? std::int16_t{2} : winner;
    winners[i] = a == largest ? std::int16_t{1} : winner;
  }
}

void pool_levels(std::int16_t* __restrict y, std::int16_t* __restrict winners,
                 const std::int16_t* __restrict above, const std::int16_t* __restrict below,
                 const std::int16_t* __restrict turns, std::int64_t width, std::int64_t channels) {
  for (std::int64_t pixel = 0; pixel < width; ++pixel) {
    pool_channels(y, winners, above, above + channels, below, below + channels, turns, channels);
    y += channels;
    winners += channels;
    above += 2 * channels;
    below += 2 * channels;
  }
}

// As with winners of floats, bits are asked for and not numbers.
void give_channels(float* __restrict dx0, float* __restrict dx1, float* __restrict dx2,
                   float* __restrict dx3, const std::int16_t* __restrict winners,
                   const float* __restrict dy, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int32_t winner = winners[i];
    dx0[i] = (winner & 1) != 0 ? dy[i] : 0.0f;
    dx1[i] = (winner & 2) != 0 ? dy[i] : 0.0f;
    dx2[i] = (winner & 4) != 0 ? dy[i] : 0.0f;
    dx3[i] = (winner & 8) != 0 ? dy[i] : 0.0f;
  }
}

void give_to_winners(float* __restrict dabove, float* __restrict dbelow,
                     const std::int16_t* __restrict winners, const float* __restrict dy,
                     std::int64_t width, std::int64_t channels) {
  for (std::int64_t pixel = 0; pixel < width; ++pixel) {
    give_channels(dabove, dabove + channels, dbelow, dbelow + channels, winners, dy, channels);
    winners += channels;
    dy += channels;
    dabove += 2 * channels;
    dbelow += 2 * channels;
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
