// Products of int8 numbers with a row of packed trits, decoded in registers: for batches so small
// that reading the weights is all that counts.
#pragma once

#include "engine/format.h"
#include "ops/kernels/codecs-inl.h"
#include "ops/kernels/integer_loops-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

std::int32_t dot_packed_trits(const std::uint8_t* packed, const std::int8_t* x, std::int64_t n) {
  constexpr std::int64_t lanes = kLanes<U8>;
  constexpr std::int64_t stripe = kBlock / 5;
  static_assert(stripe % lanes == 0);
  // Five pairs of products of a digit and a byte, at most 2540, for each vector.
  constexpr std::int64_t kVectorsIn16Bits = 12;
  const TritDigits trit_digits;
  const std::int64_t bytes = n / kBlock * stripe;
  I32 sum(0);
  for (std::int64_t first = 0; first < bytes;) {
    const std::int64_t last = std::min(bytes, first + kVectorsIn16Bits * lanes);
    I16::register_type narrow = I16(0);
    for (; first < last; first += lanes) {
      const std::int8_t* numbers = x + first / stripe * kBlock + first % stripe;
      U8 digits[5];
      trit_digits.split(digits, read<U8>(packed + first));
      for (int k = 0; k < 5; ++k) {
        const U8 factors = read<U8>(reinterpret_cast<const std::uint8_t*>(numbers + k * stripe));
        narrow = add_i16(narrow, multiply_pairs_u8_i8(digits[k], factors));
      }
    }
    sum = sum + I32(multiply_pairs_i16(narrow, I16(1)));
  }
  alignas(64) std::int32_t parts[kLanes<I32>];
  write(parts, sum);
  std::int32_t total = 0;
  for (std::int32_t part : parts) total += part;
  const std::int64_t whole = n / kBlock * kBlock;
  std::int8_t trits[kBlock];
  decode_trits(trits, packed + bytes, n - whole);
  return total + dot_int8(trits, x + whole, n - whole) + sum_int8(x + whole, n - whole);
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
