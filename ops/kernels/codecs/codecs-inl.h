// Number formats to and from bytes, and the random bits that round them.
#pragma once

#include <algorithm>
#include <array>

#include "engine/formats/format.h"
#include "ops/kernels/simd-inl.h"
#include "ops/kernels/targets.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// Philox4x32-10 on one block per 64-bit lane. Each word occupies the low half of a lane; the high
// halves hold garbage between rounds, which the 32-bit products never read.
class PhiloxLanes {
 public:
  static constexpr std::int64_t kNumbers = 8 * kLanes<U64>;

  // In vectors: for a block of numbers this would take half as long as to draw them.
  explicit PhiloxLanes(const RandomKey& key)
      : stream_(key.stream), step_(key.step), offsets_(read<U64>(kBlockOfLane.data())) {
    const U64 low(key.seed & 0xFFFFFFFF), high(key.seed >> 32);
    for (std::size_t round = 0; round < kRounds; round += kLanes<U64>) {
      write(keys_[0] + round, low + read<U64>(kTurns[0].data() + round));
      write(keys_[1] + round, high + read<U64>(kTurns[1].data() + round));
    }
  }

  // kChains times kNumbers numbers from `first` on. A round waits for the one before, so several
  // chains keep the processor busier than one.
  template <int kChains>
  void draw(std::uint16_t* out, std::uint64_t first) const {
    // Keys are read from memory each time: a call draws once or little more, and to spread twenty
    // keys over twenty registers beforehand would take a third of it.
    asm volatile("" ::: "memory");
    U64 c0[kChains], c1[kChains], c2[kChains], c3[kChains];
    for (int chain = 0; chain < kChains; ++chain) {
      c0[chain] = offsets_ + U64(first / 8 + static_cast<std::uint64_t>(chain * kLanes<U64>));
      c1[chain] = c0[chain] >> 32;
      c2[chain] = U64(stream_);
      c3[chain] = U64(step_);
    }
#pragma GCC unroll 10
    for (std::size_t round = 0; round < kRounds; ++round) {
      for (int chain = 0; chain < kChains; ++chain) {
        const U64 p0 = multiply_low_halves(c0[chain], U64(std::uint64_t{0xD2511F53}));
        const U64 p1 = multiply_low_halves(c2[chain], U64(std::uint64_t{0xCD9E8D57}));
        c0[chain] = exclusive_or(p1 >> 32, c1[chain], U64(keys_[0][round]));
        c1[chain] = p1;
        c2[chain] = exclusive_or(p0 >> 32, c3[chain], U64(keys_[1][round]));
        c3[chain] = p0;
      }
    }
    for (int chain = 0; chain < kChains; ++chain, out += kNumbers) {
      const U64 words01 = join_low_halves(c0[chain], c1[chain]);
      const U64 words23 = join_low_halves(c2[chain], c3[chain]);
      write(reinterpret_cast<std::uint64_t*>(out), interleave_even(words01, words23));
      write(reinterpret_cast<std::uint64_t*>(out + kNumbers / 2), interleave_odd(words01, words23));
    }
  }

 private:
  static constexpr std::size_t kRounds = 10, kRoomForRounds = 16;
  using Turns = std::array<std::uint64_t, kRoomForRounds>;

  // What the rounds add to the words of the key, modulo 2^32.
  static constexpr std::array<Turns, 2> kTurns = [] {
    std::array<Turns, 2> turns{};
    for (std::size_t round = 0; round < kRounds; ++round) {
      turns[0][round] = round * 0x9E3779B9u;
      turns[1][round] = round * 0xBB67AE85u;
    }
    return turns;
  }();
  // Interleaving 64-bit lanes takes the even ones for the first half of the output and the odd ones
  // for the second, whatever the width.
  static constexpr auto kBlockOfLane = [] {
    constexpr std::uint64_t kWidth = kLanes<U64>;
    std::array<std::uint64_t, kWidth> blocks{};
    for (std::uint64_t lane = 0; lane < kWidth; ++lane) {
      blocks[lane] = lane % 2 * (kWidth / 2) + lane / 2;
    }
    return blocks;
  }();

  std::uint64_t stream_, step_;
  std::uint64_t keys_[2][kRoomForRounds];
  U64 offsets_;
};

void random_u16(std::uint16_t* out, std::int64_t n, const RandomKey& key, std::uint64_t first) {
  const PhiloxLanes lanes(key);
  constexpr std::int64_t kNumbers = PhiloxLanes::kNumbers;
  // As many as the registers hold; kBlock numbers are five.
  constexpr int kChains = kLanes<U64> == 8 ? 5 : 1;
  std::int64_t i = 0;
  for (; i + kChains * kNumbers <= n; i += kChains * kNumbers) {
    lanes.draw<kChains>(out + i, first + static_cast<std::uint64_t>(i));
  }
  for (; i + kNumbers <= n; i += kNumbers) {
    lanes.draw<1>(out + i, first + static_cast<std::uint64_t>(i));
  }
  if (i == n) return;
  std::uint16_t rest[kNumbers];
  lanes.draw<1>(rest, first + static_cast<std::uint64_t>(i));
  __builtin_memcpy(out + i, rest, static_cast<std::size_t>(n - i) * sizeof(*rest));
}

// The five digits of bytes, lowest first; of bytes above 242 those of 242. Below 243, the unsigned
// min(v, v - 81, v - 162) is v mod 81, as too large a subtraction wraps around, and what was taken
// off is 81 times the fifth digit; 81 is 1 modulo 4. The rest, below 81, has a table of its four
// digits where bytes can be looked up among 128 (VBMI). Elsewhere 57 / 512 of it is the ninth
// rounded down: two numbers of two digits, for tables of 16.
struct TritDigits {
  void split(U8 (&digits)[5], const U8& bytes) const {
    split_scaled(digits, bytes);
#ifdef __AVX512VBMI__
    digits[3] = U8(shift_right_u16<6>(digits[3]));
    digits[2] = U8(shift_right_u16<4>(digits[2]));
    digits[1] = U8(shift_right_u16<2>(digits[1]));
#endif
    digits[4] = digits[4] & three;
  }

  // Digit k times kScale[k], where that saves instructions.
#ifdef __AVX512VBMI__
  static constexpr int kScale[5] = {1, 4, 16, 64, 81};
#else
  static constexpr int kScale[5] = {1, 1, 1, 1, 81};
#endif
  void split_scaled(U8 (&digits)[5], const U8& bytes) const {
#ifdef __AVX512VBMI__
    const U8 v = bytes;  // the rest of those above 242, 81 to 93, has the fields of 80
#else
    const U8 v = min(bytes, U8(std::uint8_t{242}));
#endif
    const U8 less = v - U8(std::uint8_t{81});
    const U8 rest = min(min(v, less), less - U8(std::uint8_t{81}));
    digits[4] = v - rest;
#ifdef __AVX512VBMI__
    const U8 fields = _mm512_permutex2var_epi8(first_fields, rest, last_fields);
    for (int k = 0; k < 4; ++k) digits[k] = fields & U8(static_cast<std::uint8_t>(3 * kScale[k]));
#else
    // Products need 16 bits: bytes 0, 2, 4 and so on alone, and the others above them, to which
    // they add less than it takes to reach the next ninth.
    constexpr std::int16_t kNinth = 57 << 7;
    const U8 nines = even_and_odd(multiply_high_u16(rest & U8(I16(0xFF)), I16(kNinth)),
                                  multiply_high_u16(rest, I16(kNinth)));
    const U8 low = rest - look_up(nine_times, nines);
    digits[3] = look_up(thirds, nines);
    digits[2] = look_up(rests, nines);
    digits[1] = look_up(thirds, low);
    digits[0] = look_up(rests, low);
#endif
  }

 private:
  const U8 three = U8(std::uint8_t{3});
#ifdef __AVX512VBMI__
  // The digits of 0..80 in two bits each, the lowest first; of more, those of 80.
  static constexpr auto kFields = [] {
    std::array<std::uint8_t, 128> fields{};
    for (unsigned rest = 0; rest < fields.size(); ++rest) {
      const unsigned i = rest < 80 ? rest : 80;
      fields[rest] =
          static_cast<std::uint8_t>(i % 3 | i / 3 % 3 << 2 | i / 9 % 3 << 4 | i / 27 << 6);
    }
    return fields;
  }();
  const U8 first_fields = read<U8>(kFields.data()), last_fields = read<U8>(kFields.data() + 64);
#else
  const U8 nine_times = table_of(kNineTimes), thirds = table_of(kThirds), rests = table_of(kRests);
  static constexpr std::uint8_t kNineTimes[16] = {0, 9, 18, 27, 36, 45, 54, 63, 72};
  static constexpr std::uint8_t kThirds[16] = {0, 0, 0, 1, 1, 1, 2, 2, 2};
  static constexpr std::uint8_t kRests[16] = {0, 1, 2, 0, 1, 2, 0, 1, 2};
#endif
};

// The stripe of a whole block: digit k of byte j is element j + k kTritStripe.
constexpr std::int64_t kTritStripe = kBlock / 5;
static_assert(kTritStripe % kLanes<U8> == 0);

[[gnu::always_inline]] inline void decode_trit_row(std::int8_t* trits, const std::uint8_t* packed,
                                                   std::int64_t n, const TritDigits& trit_digits) {
  constexpr std::int64_t lanes = kLanes<U8>;
  const std::int64_t stripe = (n + 4) / 5;
  const U8 one(std::uint8_t{1});
  auto* out = reinterpret_cast<std::uint8_t*>(trits);
  std::int64_t i = 0;
  // Element 4 stripe + i is the only one that may lie beyond n.
  for (; 4 * stripe + i + lanes <= n; i += lanes) {
    U8 digits[5];
    trit_digits.split(digits, read<U8>(packed + i));
    for (int k = 0; k < 5; ++k) write(out + k * stripe + i, digits[k] - one);
  }
  // Bytes that do not fill a vector go through one all the same: rows seldom end with a block.
  for (; i < stripe; i += lanes) {
    const std::int64_t bytes = std::min(stripe - i, lanes);
    U8 digits[5];
    trit_digits.split(digits, U8(read_first(reinterpret_cast<const std::int8_t*>(packed + i), bytes,
                                            I8(std::int8_t{0}))));
    for (int k = 0; k < 5; ++k) {
      const std::int64_t first = k * stripe + i;
      if (first >= n) break;
      write_first(trits + first, I8(digits[k] - one), std::min(bytes, n - first));
    }
  }
}

// Rows together: the bytes of a block fill one or two vectors, which take no longer than to prepare
// for them.
void decode_trits(std::int8_t* trits, std::int64_t ld, const std::uint8_t* packed,
                  std::int64_t ld_packed, std::int64_t rows, std::int64_t n) {
  const TritDigits trit_digits;
  for (std::int64_t r = 0; r < rows; ++r) {
    decode_trit_row(trits + r * ld, packed + r * ld_packed, n, trit_digits);
  }
}

void encode_trits(std::uint8_t* packed, const std::int8_t* trits, std::int64_t n) {
  constexpr std::int64_t lanes = kLanes<U8>;
  const std::int64_t stripe = (n + 4) / 5;
  const U8 one(std::uint8_t{1});
  const auto* in = reinterpret_cast<const std::uint8_t*>(trits);
  std::int64_t i = 0;
  for (; 4 * stripe + i + lanes <= n; i += lanes) {
    U8 digits = read<U8>(in + 4 * stripe + i) + one;
    for (int k = 3; k >= 0; --k) {
      digits = digits + digits + digits + read<U8>(in + k * stripe + i) + one;
    }
    write(packed + i, digits);
  }
  reference::encode_trit_bytes(packed, trits, n, i, stripe);
}

void trits_to_float(float* out, const std::int8_t* trits, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kLanes<F32> <= n; i += kLanes<F32>) write(out + i, to_float(read_i32(trits + i)));
  reference::kKernels.codecs.trits_to_float(out + i, trits + i, n - i);
}

void latent_to_float(float* out, const std::int8_t* codes, int threshold, std::int64_t n) {
  const I32 up(threshold), down(-threshold);
  std::int64_t i = 0;
  for (; i + kLanes<F32> <= n; i += kLanes<F32>) {
    const I32 code = read_i32(codes + i);
    write(out + i, to_float(one_if(code > up) - one_if(code < down)));
  }
  reference::kKernels.codecs.latent_to_float(out + i, codes + i, threshold, n - i);
}

void bf16_to_float(float* out, const std::uint16_t* in, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kLanes<F32> <= n; i += kLanes<F32>) {
    read_ahead(in + i, kLanes<F32>);
    write(out + i, bits_as<F32>(read_i32(in + i) << 16));
  }
  reference::kKernels.codecs.bf16_to_float(out + i, in + i, n - i);
}

void float_to_bf16(std::uint16_t* out, const float* in, const std::uint16_t* noise,
                   std::int64_t n) {
  const I32 magnitude_bits(0x7FFFFFFF), infinity(0x7F800000);
  std::int64_t i = 0;
  for (; i + kLanes<F32> <= n; i += kLanes<F32>) {
    const U32 bits = bits_as<U32>(read<F32>(in + i));
    const U32 kept = bits >> 16;
    const U32 added =
        noise == nullptr ? U32(0x7FFFu) + (kept & U32(1u)) : bits_as<U32>(read_i32(noise + i));
    // Compared as signed numbers, the only order of integers that AVX2 has.
    const auto is_nan = (bits_as<I32>(bits) & magnitude_bits) > infinity;
    const I32 rounded = bits_as<I32>((bits + added) >> 16);
    const I32 quiet = bits_as<I32>(kept | U32(0x40u));
    write_narrow(out + i, bits_as<U32>(select(is_nan, quiet, rounded)));
  }
  reference::kKernels.codecs.float_to_bf16(out + i, in + i, noise == nullptr ? nullptr : noise + i,
                                           n - i);
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
