// What MicroAdam does with the numbers of a run, in plain scalar loops that the compiler
// vectorises.
//
// Compiled once per target, and once as the specification (reference.cpp). The contracts are those
// of engine/kernels/kernel_table.h.
#pragma once

#include <bit>
#include <cstdint>

#include "engine/kernels/kernel_table.h"
#include "ops/kernels/scalar-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

void limit(float* x, float most, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float number = x[i] == x[i] ? x[i] : 0.0f;
    const float below = number < most ? number : most;
    x[i] = below > -most ? below : -most;
  }
}

// Magnitudes are ordered like their bits, which as signed numbers are compared faster.
inline bool is_at_least(float x, std::int32_t bits) {
  return (std::bit_cast<std::int32_t>(x) & 0x7FFFFFFF) >= bits;
}

std::int64_t count_at_least(const float* x, std::uint32_t bits, std::int64_t n) {
  const auto least = static_cast<std::int32_t>(bits);
  std::int32_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) count += is_at_least(x[i], least) ? 1 : 0;
  return count;
}

std::int64_t find_at_least(std::uint16_t* index, const float* x, std::uint32_t bits,
                           std::int64_t n) {
  constexpr std::int64_t kPiece = 32;  // few of which hold any
  const auto least = static_cast<std::int32_t>(bits);
  std::int64_t found = 0;
  for (std::int64_t begin = 0; begin < n; begin += kPiece) {
    const std::int64_t end = n - begin < kPiece ? n : begin + kPiece;
    std::int32_t any = 0;
    for (std::int64_t i = begin; i < end; ++i) any |= is_at_least(x[i], least) ? 1 : 0;
    if (any == 0) continue;
    for (std::int64_t i = begin; i < end; ++i) {
      if (is_at_least(x[i], least)) index[found++] = static_cast<std::uint16_t>(i);
    }
  }
  return found;
}

// Numbers are ordered like these integers, whose minimum the compiler takes in vectors, and which
// are their own inverse. A zero has no sign.
inline std::int32_t ordered(std::int32_t bits) { return bits ^ ((bits >> 31) & 0x7FFFFFFF); }

void find_range(float* low, float* high, const float* x, std::int64_t n) {
  std::int32_t lowest = 0x7FFFFFFF, highest = -0x7FFFFFFF;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int32_t number = ordered(std::bit_cast<std::int32_t>(x[i] + 0.0f));
    lowest = number < lowest ? number : lowest;
    highest = number > highest ? number : highest;
  }
  *low = std::bit_cast<float>(ordered(lowest));
  *high = std::bit_cast<float>(ordered(highest));
}

void quantize_feedback(std::uint8_t* __restrict levels, const float* __restrict x, float low,
                       float inverse, float most, const std::uint16_t* __restrict noise,
                       std::int64_t n) {
  const auto quantize = [&](std::int64_t i, float r) {
    const float level = (x[i] - low) * inverse + r;
    levels[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(level < most ? level : most));
  };
  if (noise == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) quantize(i, 0.5f);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      quantize(i, uniform_of(noise[i]));
    }
  }
}

void add_feedback(float* __restrict out, const std::uint8_t* __restrict levels, float low,
                  float unit, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] += low + static_cast<float>(std::int32_t{levels[i]}) * unit;
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
