// MicroAdam's error feedback: codes of few bits between the bounds of a bucket, in plain scalar
// loops that the compiler vectorises.
//
//     u = (high - low) / (2^b - 1)      code = floor((x - low) / u + r)      x' = low + code u
//
// r is 1/2 (to nearest) or a random number on [0, 1) (stochastic: E[x'] = x). The bounds are the
// bucket's minimum and maximum in bf16, rounded outwards, so every x lies between them and codes
// never leave [0, 2^b - 1]. A bucket with low = high decodes to it exactly.
//
// Compiled once per target, and once as the specification (reference.cpp).
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "engine/kernels/updates.h"
#include "ops/kernels/scalar-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// ---- codes in bytes ----------------------------------------------------------------------------

inline std::uint32_t read_code(const std::uint8_t* codes, std::int64_t element, int bits) {
  const std::int64_t bit = element * bits;
  const std::uint8_t* byte = codes + bit / 8;
  const int shift = static_cast<int>(bit % 8);
  std::uint32_t word = byte[0];
  if (shift + bits > 8) word |= static_cast<std::uint32_t>(byte[1]) << 8;
  return word >> shift & ((1u << bits) - 1u);
}

inline void write_code(std::uint8_t* codes, std::int64_t element, int bits, std::uint32_t code) {
  const std::int64_t bit = element * bits;
  std::uint8_t* byte = codes + bit / 8;
  const int shift = static_cast<int>(bit % 8);
  const std::uint32_t mask = ((1u << bits) - 1u) << shift;
  const std::uint32_t placed = code << shift;
  byte[0] = static_cast<std::uint8_t>((byte[0] & ~mask) | placed);
  if (shift + bits > 8) {
    byte[1] = static_cast<std::uint8_t>((byte[1] & ~(mask >> 8)) | placed >> 8);
  }
}

void pack_feedback(std::uint8_t* codes, const std::uint8_t* levels, int bits, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) write_code(codes, i, bits, levels[i]);
}

void unpack_feedback(std::uint8_t* levels, const std::uint8_t* codes, int bits, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    levels[i] = static_cast<std::uint8_t>(read_code(codes, i, bits));
  }
}

// ---- bounds ------------------------------------------------------------------------------------

// The nearest bf16 that is not above (below) x.
inline std::uint16_t bf16_down(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const bool grows = (bits >> 31) != 0 && (bits & 0xFFFFu) != 0;  // towards zero is up
  return static_cast<std::uint16_t>((bits >> 16) + (grows ? 1u : 0u));
}
inline std::uint16_t bf16_up(float x) {
  return static_cast<std::uint16_t>(bf16_down(-x) ^ 0x8000u);
}

// Numbers are ordered like these integers, whose minimum the compiler takes in vectors, and which
// are their own inverse. A zero has no sign.
inline std::int32_t ordered(std::int32_t bits) { return bits ^ ((bits >> 31) & 0x7FFFFFFF); }

template <typename Count>
[[gnu::always_inline]] inline void find_bounds(std::uint16_t* bounds, const float* x, Count n) {
  std::int32_t lowest = 0x7FFFFFFF, highest = -0x7FFFFFFF;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int32_t number = ordered(std::bit_cast<std::int32_t>(x[i] + 0.0f));
    lowest = number < lowest ? number : lowest;
    highest = number > highest ? number : highest;
  }
  bounds[0] = bf16_down(std::bit_cast<float>(ordered(lowest)));
  bounds[1] = bf16_up(std::bit_cast<float>(ordered(highest)));
}

struct FeedbackGrid {
  FeedbackGrid(const std::uint16_t* bounds, int bits, float guard)
      : low(float_of_bf16(bounds[0])), most(static_cast<float>((1 << bits) - 1)) {
    // The difference of two huge bounds would overflow; that of their halves cannot.
    const float half = 0.5f * float_of_bf16(bounds[1]) - 0.5f * low + 0.5f * guard;
    unit = 2.0f * (half / most);
    inverse = unit > 0.0f ? 1.0f / unit : 0.0f;
    // Of a unit that is tiny.
    if (std::bit_cast<std::uint32_t>(inverse) >= 0x7F800000u) inverse = 0.0f;
  }
  float low, most, unit, inverse;
};

// ---- buckets -----------------------------------------------------------------------------------

// Calls body(bucket, first element, elements) for each; the number is a constant in buckets of the
// usual size.
template <typename Body>
[[gnu::always_inline]] inline void for_each_bucket(std::int64_t n, std::int64_t bucket,
                                                   const Body& body) {
  constexpr std::int64_t kUsual = 64;
  for (std::int64_t i = 0, b = 0; i < n; i += bucket, ++b) {
    const std::int64_t count = n - i < bucket ? n - i : bucket;
    if (count == kUsual) {
      body(b, i, std::integral_constant<std::int64_t, kUsual>());
    } else {
      body(b, i, count);
    }
  }
}

void add_levels(float* __restrict out, const float* __restrict grad,
                const std::uint8_t* __restrict levels, const Feedback& feedback, std::int64_t n) {
  const auto decode = [=](std::int64_t b, std::int64_t begin, auto count)
      __attribute__((always_inline)) {
    const FeedbackGrid grid(feedback.bounds + 2 * b, feedback.bits, feedback.guard);
    for (std::int64_t i = begin; i < begin + count; ++i) {
      out[i] = grad[i] + (grid.low + static_cast<float>(std::int32_t{levels[i]}) * grid.unit);
    }
  };
  for_each_bucket(n, feedback.bucket, decode);
}

template <typename Noise>
void quantize_feedback(std::uint8_t* __restrict levels, const float* __restrict x,
                       const Feedback& feedback, const Noise& noise, std::int64_t n) {
  const auto quantize = [=](std::int64_t b, std::int64_t begin, auto count)
      __attribute__((always_inline)) {
    const FeedbackGrid grid(feedback.bounds + 2 * b, feedback.bits, feedback.guard);
    for (std::int64_t i = begin; i < begin + count; ++i) {
      const float level = (x[i] - grid.low) * grid.inverse + noise(i);
      const float within = level < grid.most ? level : grid.most;
      levels[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(within));
    }
  };
  for_each_bucket(n, feedback.bucket, quantize);
}

void choose_levels(std::uint8_t* __restrict levels, const float* __restrict x,
                   const Feedback& feedback, const std::uint16_t* __restrict noise,
                   std::int64_t n) {
  const auto measure = [=](std::int64_t b, std::int64_t begin, auto count)
      __attribute__((always_inline)) {
    find_bounds(feedback.bounds + 2 * b, x + begin, count);
  };
  for_each_bucket(n, feedback.bucket, measure);
  if (noise == nullptr) {
    quantize_feedback(
        levels, x, feedback, [](std::int64_t) { return 0.5f; }, n);
  } else {
    quantize_feedback(
        levels, x, feedback, [=](std::int64_t i) { return uniform_of(noise[i]); }, n);
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
