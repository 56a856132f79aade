// Products of int8 numbers with rows of packed trits, decoded in registers: for batches so small
// that reading the weights is all that counts.
#pragma once

#include <algorithm>
#include <iterator>
#include <limits>

#include "engine/format.h"
#include "ops/kernels/byte_sums-inl.h"
#include "ops/kernels/codecs-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

constexpr std::int64_t kStripe = kBlock / 5;
static_assert(kStripe % kLanes<U8> == 0);
constexpr int kLargestScale =
    *std::max_element(std::begin(TritDigits::kScale), std::end(TritDigits::kScale));

// The sum of digits times x, in lanes; with VNNI each digit's own, times its scale.
class DigitProducts {
 public:
  // `packed` a vector of bytes, whose digits belong to x, x + kStripe and so on.
  void add(const TritDigits& trit_digits, const std::uint8_t* packed, const std::int8_t* x) {
    U8 digits[5];
    trit_digits.split_scaled(digits, read<U8>(packed));
    for (int k = 0; k < 5; ++k) {
      const U8 factors = read<U8>(reinterpret_cast<const std::uint8_t*>(x + k * kStripe));
#ifdef __AVX512VNNI__
      sums_[k] = reinterpret_cast<Sums32>(
          _mm512_dpbusd_epi32(reinterpret_cast<Bytes>(sums_[k]), digits[k], factors));
#else
      static_assert(kLargestScale == 0);
      narrow_ += reinterpret_cast<Sums16>(multiply_pairs_u8_i8(digits[k], factors));
#endif
    }
#ifndef __AVX512VNNI__
    // Five pairs of products are at most 2540.
    if (++vectors_ == 12) widen();
#endif
  }

  std::int32_t total() {
#ifdef __AVX512VNNI__
    // A lane has 4 of each 64 products of a digit, one of five.
    static_assert((kLongestSum / 80 + 4) * (2 * 127) << kLargestScale <=
                  std::numeric_limits<std::int32_t>::max());
    I32 sum(0);
    for (int k = 0; k < 5; ++k) {
      sum += I32(reinterpret_cast<Bytes>(sums_[k])) >> TritDigits::kScale[k];
    }
#else
    widen();
    const I32 sum = wide_;
#endif
    return xsimd::hadd(sum);
  }

 private:
#ifdef __AVX512VNNI__
  // Each of its own: one after the other, sums would wait for each other.
  Sums32 sums_[5] = {};
#else
  void widen() {
    wide_ = wide_ + I32(multiply_pairs_i16(reinterpret_cast<Bytes>(narrow_), I16(1)));
    narrow_ = Sums16{};
    vectors_ = 0;
  }

  Sums16 narrow_ = {};
  I32 wide_ = I32(0);
  int vectors_ = 0;
#endif
};

void dot_packed_trits(std::int32_t* sums, const std::uint8_t* packed, std::int64_t row_bytes,
                      std::int64_t rows, const std::int8_t* x, std::int64_t n) {
  constexpr std::int64_t lanes = kLanes<U8>;
  const TritDigits trit_digits;
  const std::int64_t bytes = n / kBlock * kStripe;
  // The shorter block at the end, made as long as the others: x goes on with zeros, packed trits
  // with those of the next row, or with zeros behind the last.
  const std::int64_t rest = n % kBlock, rest_bytes = (rest + 4) / 5;
  std::int8_t rest_x[kBlock] = {};
  std::uint8_t rest_packed[kStripe] = {};
  for (std::int64_t k = 0; k * rest_bytes < rest; ++k) {
    const std::int64_t left = rest - k * rest_bytes;
    const std::int64_t count = left < rest_bytes ? left : rest_bytes;
    __builtin_memcpy(rest_x + k * kStripe, x + n - rest + k * rest_bytes,
                     static_cast<std::size_t>(count));
  }
  for (std::int64_t row = 0; row < rows; ++row, packed += row_bytes) {
    DigitProducts products;
    for (std::int64_t first = 0; first < bytes; first += lanes) {
      products.add(trit_digits, packed + first, x + first / kStripe * kBlock + first % kStripe);
    }
    if (rest > 0) {
      const std::uint8_t* last = packed + bytes;
      if (row + 1 == rows || row_bytes < kStripe) {
        __builtin_memcpy(rest_packed, last, static_cast<std::size_t>(rest_bytes));
        last = rest_packed;
      }
      for (std::int64_t i = 0; i < kStripe; i += lanes) {
        products.add(trit_digits, last + i, rest_x + i);
      }
    }
    sums[row] = products.total();
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
