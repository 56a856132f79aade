// The loops around products of int8 numbers (rounding, sums, rescaling, packing), in plain scalar
// form that the compiler vectorises.
//
// They are compiled once per target, and once as the specification (reference.cpp). The contracts
// are those of engine/kernels/products.h.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "engine/kernels/products.h"
#include "ops/kernels/scalar-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

void quantize_int8(std::int8_t* __restrict codes, const float* __restrict x,
                   const float* __restrict factors, float inverse, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float level = (factors == nullptr ? x[i] : x[i] * factors[i]) * inverse;
    const float below = level < 127.0f ? level : 127.0f;
    codes[i] = static_cast<std::int8_t>(round_to_int(below > -127.0f ? below : -127.0f));
  }
}

void quantize_rests(std::int8_t* __restrict rests, const std::int8_t* __restrict codes,
                    const float* __restrict x, const float* __restrict factors, float inverse,
                    std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float level = x[i] * factors[i] * inverse - static_cast<float>(codes[i]);
    const float finer = level * static_cast<float>(kFiner);
    const float below = finer < 127.0f ? finer : 127.0f;
    rests[i] = static_cast<std::int8_t>(round_to_int(below > -127.0f ? below : -127.0f));
  }
}

std::int32_t largest_sum(const std::int32_t* __restrict sums, std::int64_t ld,
                         const std::int32_t* __restrict corrections, std::int64_t rows,
                         std::int64_t n) {
  std::int32_t largest = 0;
  for (std::int64_t r = 0; r < rows; ++r, sums += ld) {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int32_t sum = sums[i] - corrections[r], magnitude = sum < 0 ? -sum : sum;
      largest = magnitude > largest ? magnitude : largest;
    }
  }
  return largest;
}

float max_abs_product(const float* __restrict x, const float* __restrict factors, std::int64_t n) {
  // The order of magnitudes is that of their bits, and NaN comes last.
  int largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const int magnitude = std::bit_cast<int>(x[i] * factors[i]) & 0x7FFFFFFF;
    largest = magnitude > largest ? magnitude : largest;
  }
  return std::bit_cast<float>(largest);
}

void sum_int8(std::int32_t* __restrict sums, const std::int8_t* __restrict x, std::int64_t ld,
              std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r, x += ld) {
    std::int32_t sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += x[i];
    sums[r] = sum;
  }
}

std::int32_t dot_int8(const std::int8_t* a, const std::int8_t* b, std::int64_t n) {
  std::int32_t sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

bool any_negative(const std::int8_t* x, std::int64_t n) {
  std::int8_t joined = 0;
  for (std::int64_t i = 0; i < n; ++i) joined = static_cast<std::int8_t>(joined | x[i]);
  return joined < 0;
}

void raise_max_abs(float* __restrict largest, const float* __restrict x, std::int64_t ld,
                   const float* __restrict factors, std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r, x += ld) {
    const float factor = factors[r];
    for (std::int64_t i = 0; i < n; ++i) {
      // The order of magnitudes is that of their bits, and NaN comes last.
      const int magnitude = std::bit_cast<int>(x[i] * factor) & 0x7FFFFFFF;
      const int before = std::bit_cast<int>(largest[i]);
      largest[i] = std::bit_cast<float>(magnitude > before ? magnitude : before);
    }
  }
}

void rescale_sums(float* __restrict out, std::int64_t ld_out, const std::int32_t* __restrict sums,
                  std::int64_t ld_sums, const std::int32_t* __restrict corrections,
                  const float* __restrict factors, std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r, out += ld_out, sums += ld_sums) {
    const std::int32_t correction = corrections[r];
    const float factor = factors[r];
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = factor * static_cast<float>(sums[i] - correction);
    }
  }
}

void rescale_sums_by(float* __restrict out, std::int64_t ld_out,
                     const std::int32_t* __restrict sums, std::int64_t ld_sums,
                     const std::int32_t* __restrict corrections, const float* __restrict factors,
                     const float* __restrict column_factors, std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r, out += ld_out, sums += ld_sums) {
    const std::int32_t correction = corrections[r];
    const float factor = factors[r];
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = factor * column_factors[i] * static_cast<float>(sums[i] - correction);
    }
  }
}

void pack_down(std::uint8_t* __restrict panel, const std::int8_t* __restrict rows, std::int64_t ld,
               std::int64_t depth, std::int64_t columns, int offset) {
  for (std::int64_t g = 0; 4 * g < depth; ++g) {
    std::uint8_t* group = panel + g * 4 * kPanelColumns;
    const std::int8_t* row = rows + 4 * g * ld;
    std::memset(group, 0, 4 * kPanelColumns);
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t j = 0; j < 4 && 4 * g + j < depth; ++j) {
        group[4 * c + j] = static_cast<std::uint8_t>(row[j * ld + c] + offset);
      }
    }
  }
}

void pack_across(std::uint8_t* panel, const std::int8_t* rows, std::int64_t ld, std::int64_t depth,
                 std::int64_t columns, int offset) {
  const std::uint32_t offsets = static_cast<std::uint32_t>(offset) * 0x01010101u;
  for (std::int64_t g = 0; 4 * g < depth; ++g) {
    std::uint8_t* group = panel + g * 4 * kPanelColumns;
    if (columns < kPanelColumns || depth - 4 * g < 4) std::memset(group, 0, 4 * kPanelColumns);
    if (depth - 4 * g >= 4) {
      // Four sums of bytes at once: up to 127 + 128 nothing is carried into the neighbour, and the
      // highest bits are added without a carry.
      for (std::int64_t c = 0; c < columns; ++c) {
        std::uint32_t bytes;
        std::memcpy(&bytes, rows + c * ld + 4 * g, 4);
        bytes = ((bytes & 0x7F7F7F7Fu) + offsets) ^ (bytes & 0x80808080u);
        std::memcpy(group + 4 * c, &bytes, 4);
      }
      continue;
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t j = 0; j < 4 && 4 * g + j < depth; ++j) {
        group[4 * c + j] = static_cast<std::uint8_t>(rows[c * ld + 4 * g + j] + offset);
      }
    }
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
