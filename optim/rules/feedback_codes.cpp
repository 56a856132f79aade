#include "optim/rules/feedback_codes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "engine/formats/half_precision.h"
#include "engine/kernels/updates.h"

namespace tritgrad {
namespace {

// Return the nearest bf16 that is not above (below) x.
std::uint16_t bf16_down(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const bool grows = (bits >> 31) != 0 && (bits & 0xFFFFu) != 0;  // towards zero is up
  return static_cast<std::uint16_t>((bits >> 16) + (grows ? 1u : 0u));
}
std::uint16_t bf16_up(float x) { return static_cast<std::uint16_t>(bf16_down(-x) ^ 0x8000u); }

struct Grid {
  Grid(const FeedbackBounds& bounds, int bits, float guard)
      : low(float_of_bf16(bounds.low)), levels(static_cast<float>((1 << bits) - 1)) {
    // The difference of two huge bounds would overflow; that of their halves cannot.
    const float half = 0.5f * float_of_bf16(bounds.high) - 0.5f * low + 0.5f * guard;
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

// Codes are packed a piece at a time; pieces of 4-bit codes that begin at an even element, the
// common case, are whole bytes.
constexpr std::int64_t kCodesAtOnce = 64;

void pack(std::uint8_t* __restrict codes, std::int64_t first, const std::uint8_t* __restrict levels,
          std::int64_t n, int bits) {
  std::int64_t i = 0;
  if (bits == 4 && first % 2 == 0) {
    std::uint8_t* __restrict bytes = codes + first / 2;
    for (std::int64_t j = 0; j < n / 2; ++j) {
      bytes[j] = static_cast<std::uint8_t>(levels[2 * j] | levels[2 * j + 1] << 4);
    }
    i = n / 2 * 2;
  }
  for (; i < n; ++i) write_code(codes, first + i, bits, levels[i]);
}

void unpack(std::uint8_t* __restrict levels, const std::uint8_t* __restrict codes,
            std::int64_t first, std::int64_t n, int bits) {
  std::int64_t i = 0;
  if (bits == 4 && first % 2 == 0) {
    const std::uint8_t* __restrict bytes = codes + first / 2;
    for (std::int64_t j = 0; j < n / 2; ++j) {
      levels[2 * j] = bytes[j] & 15;
      levels[2 * j + 1] = bytes[j] >> 4;
    }
    i = n / 2 * 2;
  }
  for (; i < n; ++i) levels[i] = static_cast<std::uint8_t>(read_code(codes, first + i, bits));
}

}  // namespace

FeedbackBounds feedback_bounds(const float* x, std::int64_t n) {
  float low, high;
  kernels().updates.find_range(&low, &high, x, n);
  return {bf16_down(low), bf16_up(high)};
}

void encode_feedback(std::uint8_t* codes, std::int64_t first, const float* x, std::int64_t n,
                     int bits, const FeedbackBounds& bounds, float guard,
                     const std::uint16_t* noise) {
  const Grid grid(bounds, bits, guard);
  std::array<std::uint8_t, kCodesAtOnce> levels;
  for (std::int64_t begin = 0; begin < n; begin += kCodesAtOnce) {
    const std::int64_t size = std::min(kCodesAtOnce, n - begin);
    kernels().updates.quantize_feedback(levels.data(), x + begin, grid.low, grid.inverse,
                                        grid.levels, noise == nullptr ? nullptr : noise + begin,
                                        size);
    pack(codes, first + begin, levels.data(), size, bits);
  }
}

void add_decoded_feedback(float* out, const std::uint8_t* codes, std::int64_t first, std::int64_t n,
                          int bits, const FeedbackBounds& bounds, float guard) {
  const Grid grid(bounds, bits, guard);
  std::array<std::uint8_t, kCodesAtOnce> levels;
  for (std::int64_t begin = 0; begin < n; begin += kCodesAtOnce) {
    const std::int64_t size = std::min(kCodesAtOnce, n - begin);
    unpack(levels.data(), codes, first + begin, size, bits);
    kernels().updates.add_feedback(out + begin, levels.data(), grid.low, grid.unit, size);
  }
}

}  // namespace tritgrad
