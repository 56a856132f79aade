// Products of int8 numbers with rows of packed trits, decoded in registers: for batches so small
// that reading the weights is all that counts.
#pragma once

#include "engine/format.h"
#include "ops/kernels/codecs-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

constexpr std::int64_t kStripe = kBlock / 5;
static_assert(kStripe % kLanes<U8> == 0);

// Five pairs of products of a digit and a byte, at most 2540 in all, on top of `sums` of 16 bits.
inline I16::register_type add_five(I16::register_type sums, const TritDigits& trit_digits,
                                   const std::uint8_t* packed, const std::int8_t* x) {
  U8 digits[5];
  trit_digits.split(digits, read<U8>(packed));
  for (int k = 0; k < 5; ++k) {
    const U8 factors = read<U8>(reinterpret_cast<const std::uint8_t*>(x + k * kStripe));
    sums = add_i16(sums, multiply_pairs_u8_i8(digits[k], factors));
  }
  return sums;
}

void dot_packed_trits(std::int32_t* sums, const std::uint8_t* packed, std::int64_t row_bytes,
                      std::int64_t rows, const std::int8_t* x, std::int64_t n) {
  constexpr std::int64_t lanes = kLanes<U8>;
  constexpr std::int64_t kVectorsIn16Bits = 12;
  const TritDigits trit_digits;
  const std::int64_t bytes = n / kBlock * kStripe;
  // The shorter block at the end, made as long as the others: x and packed trits go on with zeros.
  const std::int64_t rest = n % kBlock, rest_bytes = (rest + 4) / 5;
  std::int8_t rest_x[kBlock] = {};
  std::uint8_t rest_packed[kStripe] = {};
  for (std::int64_t i = 0; i < rest; ++i) {
    rest_x[i / rest_bytes * kStripe + i % rest_bytes] = x[n - rest + i];
  }
  for (std::int64_t row = 0; row < rows; ++row, packed += row_bytes) {
    I32 sum(0);
    for (std::int64_t first = 0; first < bytes;) {
      const std::int64_t last = std::min(bytes, first + kVectorsIn16Bits * lanes);
      I16::register_type narrow = I16(0);
      for (; first < last; first += lanes) {
        narrow = add_five(narrow, trit_digits, packed + first,
                          x + first / kStripe * kBlock + first % kStripe);
      }
      sum = sum + I32(multiply_pairs_i16(narrow, I16(1)));
    }
    if (rest > 0) {
      __builtin_memcpy(rest_packed, packed + bytes, static_cast<std::size_t>(rest_bytes));
      I16::register_type narrow = I16(0);
      for (std::int64_t i = 0; i < kStripe; i += lanes) {
        narrow = add_five(narrow, trit_digits, rest_packed + i, rest_x + i);
      }
      sum = sum + I32(multiply_pairs_i16(narrow, I16(1)));
    }
    alignas(64) std::int32_t parts[kLanes<I32>];
    write(parts, sum);
    sums[row] = 0;
    for (std::int32_t part : parts) sums[row] += part;
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
