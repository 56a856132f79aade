#include "optim/rules/feedback_codes.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tritgrad {
namespace {

float to_float(std::uint16_t bf16) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bf16) << 16);
}

// The nearest bf16 that is not above (below) x.
std::uint16_t bf16_down(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const bool grows = (bits >> 31) != 0 && (bits & 0xFFFFu) != 0;  // towards zero is up
  return static_cast<std::uint16_t>((bits >> 16) + (grows ? 1u : 0u));
}
std::uint16_t bf16_up(float x) { return static_cast<std::uint16_t>(bf16_down(-x) ^ 0x8000u); }

struct Grid {
  Grid(const FeedbackBounds& bounds, int bits, float guard)
      : low(to_float(bounds.low)), levels(static_cast<float>((1 << bits) - 1)) {
    // Of two huge bounds the difference would overflow; their halves cannot.
    const float half = 0.5f * to_float(bounds.high) - 0.5f * low + 0.5f * guard;
    unit = 2.0f * (half / levels);
    inverse = unit > 0.0f ? 1.0f / unit : 0.0f;
    if (!std::isfinite(inverse)) inverse = 0.0f;
  }
  float low, levels, unit, inverse;
};

std::uint32_t read_code(const std::uint8_t* codes, std::int64_t element, int bits) {
  const std::int64_t bit = element * bits;
  const std::uint8_t* byte = codes + bit / 8;
  const int shift = static_cast<int>(bit % 8);
  std::uint32_t word = byte[0];
  if (shift + bits > 8) word |= static_cast<std::uint32_t>(byte[1]) << 8;
  return word >> shift & ((1u << bits) - 1u);
}

void write_code(std::uint8_t* codes, std::int64_t element, int bits, std::uint32_t code) {
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

}  // namespace

FeedbackBounds feedback_bounds(const float* x, std::int64_t n) {
  const auto [low, high] = std::minmax_element(x, x + n);
  return {bf16_down(*low), bf16_up(*high)};
}

void encode_feedback(std::uint8_t* codes, std::int64_t first, const float* x, std::int64_t n,
                     int bits, const FeedbackBounds& bounds, float guard,
                     const std::uint16_t* noise) {
  const Grid grid(bounds, bits, guard);
  for (std::int64_t i = 0; i < n; ++i) {
    const float r = noise == nullptr ? 0.5f : (static_cast<float>(noise[i]) + 0.5f) * 0x1p-16f;
    const float level = std::floor((x[i] - grid.low) * grid.inverse + r);
    write_code(codes, first + i, bits,
               static_cast<std::uint32_t>(std::clamp(level, 0.0f, grid.levels)));
  }
}

void add_decoded_feedback(float* out, const std::uint8_t* codes, std::int64_t first, std::int64_t n,
                          int bits, const FeedbackBounds& bounds, float guard) {
  const Grid grid(bounds, bits, guard);
  for (std::int64_t i = 0; i < n; ++i) {
    const float code = static_cast<float>(read_code(codes, first + i, bits));
    out[i] += grid.low + code * grid.unit;
  }
}

}  // namespace tritgrad
