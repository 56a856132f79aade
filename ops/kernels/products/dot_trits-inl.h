// Products of int8 numbers with rows of packed trits, decoded in registers: for batches so small
// that reading the weights is all that counts.
#pragma once

#include <limits>

#include "engine/formats/format.h"
#include "engine/memory/buffer.h"
#include "ops/kernels/codecs/codecs-inl.h"
#include "ops/kernels/products/byte_sums-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

#ifdef __AVX512VNNI__

// Rows of weights that go by together, for what is read of x: as many as registers have room for.
constexpr int kRowsTogether = 3;

// sum / factor, where factor divides it: an odd one has an inverse modulo 2^32.
template <int kFactor>
inline I32 exact_quotient(const I32& sum) {
  if constexpr (kFactor % 2 == 0) {
    static_assert((kFactor & (kFactor - 1)) == 0);
    return sum >> __builtin_ctz(kFactor);
  } else {
    constexpr std::uint32_t inverse = [] {
      std::uint32_t x = kFactor;  // right in the last three bits; each turn doubles them
      for (int turn = 0; turn < 4; ++turn) x *= 2u - kFactor * x;
      return x;
    }();
    return sum * I32(static_cast<std::int32_t>(inverse));
  }
}

// The sum of digits times x, in lanes: each digit's own, times its scale.
class DigitProducts {
 public:
  // `packed` a vector of bytes, whose digits belong to x, x + kTritStripe and so on.
  void add(const TritDigits& trit_digits, const std::uint8_t* packed, const std::int8_t* x) {
    U8 digits[5];
    trit_digits.split_scaled(digits, read<U8>(packed));
    unrolled<5>([&]<int k>() {
      const U8 factors = read<U8>(reinterpret_cast<const std::uint8_t*>(x + k * kTritStripe));
      sums_[k] = reinterpret_cast<Sums32>(
          _mm512_dpbusd_epi32(reinterpret_cast<Bytes>(sums_[k]), digits[k], factors));
    });
  }

  std::int32_t total() const {
    // A lane has 4 of each 64 products of a digit, one of five.
    static_assert((kLongestSum / 80 + 4) * (2 * 127) * 81 <=
                  std::numeric_limits<std::int32_t>::max());
    return sum_lanes(quotient<0>() + quotient<1>() + quotient<2>() + quotient<3>() + quotient<4>());
  }

 private:
  template <int k>
  I32 quotient() const {
    return exact_quotient<TritDigits::kScale[k]>(I32(reinterpret_cast<Bytes>(sums_[k])));
  }

  // Each of its own: one after the other, sums would wait for each other.
  Sums32 sums_[5] = {};
};

#else

constexpr int kRowsTogether = 1;

class DigitProducts {
 public:
  void add(const TritDigits& trit_digits, const std::uint8_t* packed, const std::int8_t* x) {
    U8 digits[5];
    trit_digits.split(digits, read<U8>(packed));
    for (int k = 0; k < 5; ++k) {
      const U8 factors = read<U8>(reinterpret_cast<const std::uint8_t*>(x + k * kTritStripe));
      narrow_ += reinterpret_cast<Sums16>(multiply_pairs_u8_i8(digits[k], factors));
    }
    // Five pairs of products are at most 2540.
    if (++vectors_ == 12) widen();
  }

  std::int32_t total() {
    widen();
    return sum_lanes(wide_);
  }

 private:
  void widen() {
    wide_ = wide_ + I32(multiply_pairs_i16(reinterpret_cast<Bytes>(narrow_), I16(1)));
    narrow_ = Sums16{};
    vectors_ = 0;
  }

  Sums16 narrow_ = {};
  I32 wide_ = I32(0);
  int vectors_ = 0;
};

#endif

// A row's numbers x in vectors: whole blocks, and the shorter one at the end, made as long as the
// others by zeros.
struct RowOfCodes {
  const std::int8_t* x;
  std::int64_t bytes;       // of packed trits, in whole blocks
  std::int64_t rest_bytes;  // behind them
  alignas(kAlignment) std::int8_t rest[kBlock] = {};

  RowOfCodes(const std::int8_t* codes, std::int64_t n)
      : x(codes), bytes(n / kBlock * kTritStripe), rest_bytes((n % kBlock + 4) / 5) {
    const std::int64_t count = n % kBlock;
    for (std::int64_t k = 0; k * rest_bytes < count; ++k) {
      const std::int64_t left = count - k * rest_bytes;
      __builtin_memcpy(rest + k * kTritStripe, x + n - count + k * rest_bytes,
                       static_cast<std::size_t>(left < rest_bytes ? left : rest_bytes));
    }
  }
};

// Rows of packed trits, row_bytes apart.
struct PackedRows {
  const std::uint8_t* bytes;
  std::int64_t row_bytes, rows;

  const std::uint8_t* row(std::int64_t r) const { return bytes + r * row_bytes; }
  // How much at least lies behind row r's own bytes, of which the last row may have no more.
  std::int64_t behind(std::int64_t r) const { return (rows - 1 - r) * row_bytes; }
};

// The sums of rows row, row + apart and so on, kRows of them. Memory further on is asked for: the
// processor by itself asks for too little of what is read between so much arithmetic.
template <int kRows>
void dot_rows(std::int32_t* sums, const TritDigits& trit_digits, const PackedRows& packed,
              std::int64_t row, std::int64_t apart, const RowOfCodes& codes) {
  constexpr std::int64_t lanes = kLanes<U8>;
  constexpr std::int64_t kBytesAhead = 4096;
  DigitProducts products[kRows];
  for (std::int64_t first = 0; first < codes.bytes; first += lanes) {
    const std::int8_t* x = codes.x + first / kTritStripe * kBlock + first % kTritStripe;
    unrolled<kRows>([&]<int r>() {
      const std::uint8_t* bytes = packed.row(row + r * apart) + first;
      _mm_prefetch(reinterpret_cast<const char*>(bytes + kBytesAhead), _MM_HINT_T0);
      products[r].add(trit_digits, bytes, x);
    });
  }
  if (codes.rest_bytes > 0) {
    unrolled<kRows>([&]<int r>() {
      // Behind a row's own bytes those of the next ones do as well, times zero.
      const std::int64_t here = row + r * apart;
      const std::uint8_t* last = packed.row(here) + codes.bytes;
      std::uint8_t copy[kTritStripe] = {};
      if (packed.behind(here) < kTritStripe - codes.rest_bytes) {
        __builtin_memcpy(copy, last, static_cast<std::size_t>(codes.rest_bytes));
        last = copy;
      }
      for (std::int64_t i = 0; i < kTritStripe; i += lanes) {
        products[r].add(trit_digits, last + i, codes.rest + i);
      }
    });
  }
  unrolled<kRows>([&]<int r>() { sums[row + r * apart] = products[r].total(); });
}

// Rows that go by together lie as far apart as they can, so that the processor sees as many streams
// and follows each: of neighbours, whose ends it meets every few lines, it loses track.
void dot_packed_trits(std::int32_t* sums, const std::uint8_t* packed, std::int64_t row_bytes,
                      std::int64_t rows, const std::int8_t* x, std::int64_t n) {
  const TritDigits trit_digits;
  const RowOfCodes codes(x, n);
  const PackedRows all{packed, row_bytes, rows};
  const std::int64_t apart = rows / kRowsTogether;
  for (std::int64_t row = 0; row < apart; ++row) {
    dot_rows<kRowsTogether>(sums, trit_digits, all, row, apart, codes);
  }
  for (std::int64_t row = apart * kRowsTogether; row < rows; ++row) {
    dot_rows<1>(sums, trit_digits, all, row, 0, codes);
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
