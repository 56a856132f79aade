// Codecs of lowbit_loops-inl.h in vectors: whole groups of integers with a scale each, and codes of
// 4, 5 or 6 bits packed in blocks of a matrix's row, in vectors that may reach beyond a stripe into
// the next one, which is written after it. The last group, longer arrays of packed codes, and none
// at all go through the loops, which are the specification.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/formats/format.h"
#include "engine/kernels/codecs.h"
#include "ops/kernels/codecs/codec_verbs-inl.h"
#include "ops/kernels/codecs/lowbit_loops-inl.h"
#include "ops/kernels/products/byte_sums-inl.h"
#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace wide {
namespace {

constexpr std::int64_t kStep = kLanes<F32>, kScaleVectors = kCodesPerScale / kStep;

// The lanes of a group's magnitudes, in an order of integers in which infinity is the largest and
// NaN below zero: what is added carries NaN into the sign.
constexpr std::int32_t kZeroInOrder = kMagnitudeBits - kInfinityBits;
inline I32 magnitudes_in_order(const F32& x) {
  return (bits_as<I32>(x) & I32(kMagnitudeBits)) + I32(kZeroInOrder);
}
inline U32 largest_of_lanes(const float* x) {
  I32 largest(kZeroInOrder);
  for (std::int64_t part = 0; part < kScaleVectors; ++part) {
    largest = max(largest, magnitudes_in_order(read<F32>(x + part * kStep)));
  }
  return bits_as<U32>(largest);
}

// shared_scale() of numbers in that order: a scale in the upper half of each lane.
inline U32 shared_scales(const U32& largest_in_order, float top, bool stochastic) {
  constexpr float kMost = std::numeric_limits<float>::max(), kLeast = 0x1p-126f;
  const I32 bits = bits_as<I32>(largest_in_order) - I32(kZeroInOrder);
  const F32 largest = bits_as<F32>(min(bits, I32(kLargestBits)));
  const U32 scale = bits_as<U32>(largest / F32(top));
  const U32 nearest = U32(0x7FFFu) + ((scale >> 16) & U32(1u));
  const U32 rounded = (scale + (stochastic ? U32(0xFFFFu) : nearest)) & U32(0xFFFF0000u);
  const I32 highest(std::bit_cast<std::int32_t>(kMost / top) & ~0xFFFF);
  const I32 kept = min(bits_as<I32>(rounded), highest);
  return bits_as<U32>(
      select(bits_as<I32>(largest) < I32(std::bit_cast<std::int32_t>(top * kLeast)), I32(0), kept));
}

// Levels of a vector under a scale that is not 0.
inline I32 levels_of(const F32& x, const F32& scale, float top, const std::uint16_t* noise) {
  const F32 exact = x / scale;
  const F32 level = clamp(select(exact == exact, exact, F32(0.0f)), F32(-top), F32(top));
  return round_small(level, noise);
}

// Codes of as many numbers as fill a vector with bytes; `scales` belong to its groups.
inline void encode_bytes(std::int8_t* codes, const float* x, const float* scales, float top,
                         const std::uint16_t* noise) {
  const auto levels = [=](std::int64_t part) {
    const std::int64_t i = part * kStep;
    return levels_of(read<F32>(x + i), F32(scales[i / kCodesPerScale]), top,
                     noise == nullptr ? nullptr : noise + i);
  };
  write(codes, narrow(levels(0), levels(1), levels(2), levels(3)));
}

// As many whole groups as a vector has lanes, or fewer. All scales are chosen first, as the way
// from a group's numbers to its scale is long; whoever has other work may do it before the codes.
class SomeGroups {
 public:
  static constexpr std::int64_t kMost = kStep;

  // by_chance: codes will be rounded by noise.
  SomeGroups(std::uint16_t* scales, const float* x, int max_code, bool by_chance,
             std::int64_t groups)
      : x_(x), top_(static_cast<float>(max_code)), n_(groups * kCodesPerScale) {
    U32 sizes[kMost];
    for (std::int64_t g = 0; g < kMost; ++g) {
      sizes[g] = g < groups ? largest_of_lanes(x + g * kCodesPerScale) : U32(0u);
    }
    const U32 chosen = shared_scales(largest_of_each(sizes), top_, by_chance);
    std::uint16_t narrowed[kMost];
    write_narrow(narrowed, chosen >> 16);
    std::memcpy(scales, narrowed, static_cast<std::size_t>(groups) * sizeof(std::uint16_t));
    // Divided by an infinite scale, all numbers become 0.
    const U32 infinity(static_cast<std::uint32_t>(kInfinityBits));
    write(divisors_, bits_as<F32>(select(chosen == U32(0u), infinity, chosen)));
  }

  void encode(std::int8_t* codes, const std::uint16_t* noise) const {
    constexpr std::int64_t kTogether = kLanes<I8>;
    const auto noise_at = [=](std::int64_t i) { return noise == nullptr ? nullptr : noise + i; };
    std::int64_t i = 0;
    for (; i + kTogether <= n_; i += kTogether) {
      encode_bytes(codes + i, x_ + i, divisors_ + i / kCodesPerScale, top_, noise_at(i));
    }
    if constexpr (kTogether > kCodesPerScale) {
      if (i < n_) encode_one(codes + i, i, noise_at(i));
    }
  }

 private:
  // Where two groups fill a vector.
  void encode_one(std::int8_t* codes, std::int64_t i, const std::uint16_t* noise) const {
    const auto levels = [&](std::int64_t part) {
      return levels_of(read<F32>(x_ + i + part), F32(divisors_[i / kCodesPerScale]), top_,
                       noise == nullptr ? nullptr : noise + part);
    };
    write_narrow(codes, narrow(levels(0), levels(kStep)));
  }

  const float* x_;
  float top_;
  std::int64_t n_;
  alignas(kAlignment) float divisors_[kMost];
};

void encode_groups(std::int8_t* codes, std::uint16_t* scales, const float* x, int max_code,
                   const std::uint16_t* noise, std::int64_t n) {
  const std::int64_t groups = n / kCodesPerScale;
  for (std::int64_t g = 0; g < groups; g += SomeGroups::kMost) {
    const std::int64_t i = g * kCodesPerScale;
    const SomeGroups some(scales + g, x + i, max_code, noise != nullptr,
                          std::min(SomeGroups::kMost, groups - g));
    some.encode(codes + i, noise == nullptr ? nullptr : noise + i);
  }
  const std::int64_t done = groups * kCodesPerScale;
  if (done == n) return;
  TRITGRAD_TARGET::encode_groups(codes + done, scales + groups, x + done, max_code,
                                 noise == nullptr ? nullptr : noise + done, n - done);
}

void decode_groups(float* out, const std::int8_t* codes, const std::uint16_t* scales, int max_code,
                   std::int64_t n) {
  const I32 most(max_code);
  const std::int64_t groups = n / kCodesPerScale;
  for (std::int64_t g = 0; g < groups; ++g) {
    const F32 scale(float_of_bf16(scales[g]));
#pragma GCC unroll 4
    for (std::int64_t i = g * kCodesPerScale; i < (g + 1) * kCodesPerScale; i += kStep) {
      write(out + i, to_float(clamp(read_i32(codes + i), -most, most)) * scale);
    }
  }
  const std::int64_t done = groups * kCodesPerScale;
  if (done == n) return;
  TRITGRAD_TARGET::decode_groups(out + done, codes + done, scales + groups, max_code, n - done);
}

// The layout of a block of n codes: `half` bytes with two nibbles each, then the bits above them in
// stripes.
template <int kBits>
struct CodePlanes {
  static constexpr std::int64_t kStep = kLanes<U8>;
  // Vectors that begin in a block, or in a last stripe that is longer than what is left of it.
  static constexpr std::int64_t kRoom = kBlock + 2 * 64;
  static constexpr int kWidth = kBits - 4;
  static constexpr int kStripes = kWidth == 0 ? 0 : 8 / kWidth;
  static constexpr auto kHighBits = static_cast<std::uint8_t>((1 << kBits) - 16);

  explicit CodePlanes(std::int64_t n)
      : half((n + 1) / 2), stripe(kWidth == 0 ? 0 : (n * kWidth + 7) / 8) {}

  std::int64_t bytes() const { return half + stripe; }

  // Bits of each byte up (down where kBy < 0); those that would pass into the next one are masked
  // off before or after.
  template <int kBy>
  static U8 shifted(const U8& x) {
    const U64 words = bits_as<U64>(x);
    if constexpr (kBy >= 0) {
      return bits_as<U8>(words << kBy);
    } else {
      return bits_as<U8>(words >> -kBy);
    }
  }
  // How far the high bits of stripe k lie above those of a code, in their bytes.
  static constexpr int above(int k) { return k * kWidth - 4; }

  std::int64_t half, stripe;
};

// Inlined, so that blocks of the usual length know their strides.
template <int kBits>
[[gnu::always_inline]] inline void pack_block(std::uint8_t* packed, const std::int8_t* codes,
                                              int max_code, std::int64_t n) {
  using Planes = CodePlanes<kBits>;
  const Planes planes(n);
  constexpr std::int8_t kOffset = 1 << (kBits - 1);
  const I8 most(static_cast<std::int8_t>(max_code));
  alignas(kAlignment) std::int8_t rising[Planes::kRoom];
  std::int64_t whole = 0;
  for (; whole + Planes::kStep <= n; whole += Planes::kStep) {
    write(rising + whole, clamp(read<I8>(codes + whole), -most, most));
  }
  std::memset(rising + whole, -kOffset, static_cast<std::size_t>(Planes::kRoom - whole));
  if (whole < n) {
    write_first(rising + whole, clamp(read_first(codes + whole, n - whole, most), -most, most),
                n - whole);
  }
  const auto numbers = [&](std::int64_t i) {  // from 0 on
    return bits_as<U8>(read<I8>(rising + i) + I8(kOffset));
  };
  alignas(kAlignment) std::uint8_t bytes[Planes::kRoom];
  for (std::int64_t j = 0; j < planes.half; j += Planes::kStep) {
    const U8 nibble(std::uint8_t{15});
    write(bytes + j,
          (numbers(j) & nibble) | Planes::template shifted<4>(numbers(planes.half + j) & nibble));
  }
  for (std::int64_t j = 0; j < planes.stripe; j += Planes::kStep) {
    U8 high(std::uint8_t{0});
    unrolled<Planes::kStripes>([&]<int k>() {
      high = high | Planes::template shifted<Planes::above(k)>(numbers(k * planes.stripe + j) &
                                                               U8(Planes::kHighBits));
    });
    write(bytes + planes.half + j, high);
  }
  std::memcpy(packed, bytes, static_cast<std::size_t>(planes.bytes()));
}

template <int kBits>
[[gnu::always_inline]] inline void unpack_block(std::int8_t* codes, const std::uint8_t* packed,
                                                int max_code, std::int64_t n) {
  using Planes = CodePlanes<kBits>;
  const Planes planes(n);
  alignas(kAlignment) std::uint8_t bytes[Planes::kRoom], nibbles[Planes::kRoom] = {};
  std::memcpy(bytes, packed, static_cast<std::size_t>(planes.bytes()));
  std::memset(bytes + planes.bytes(), 0, static_cast<std::size_t>(Planes::kRoom - planes.bytes()));
  const U8 nibble(std::uint8_t{15});
  for (std::int64_t j = 0; j < planes.half; j += Planes::kStep) {
    write(nibbles + j, read<U8>(bytes + j) & nibble);
  }
  for (std::int64_t j = 0; j < planes.half; j += Planes::kStep) {
    write(nibbles + planes.half + j, Planes::template shifted<-4>(read<U8>(bytes + j)) & nibble);
  }
  alignas(kAlignment) std::int8_t out[Planes::kRoom];
  const I8 offset(std::int8_t{1 << (kBits - 1)}), most(static_cast<std::int8_t>(max_code));
  const auto finish = [&](std::int64_t i, const U8& number) {
    write(out + i, clamp(bits_as<I8>(number) - offset, -most, most));
  };
  if constexpr (Planes::kStripes == 0) {
    for (std::int64_t i = 0; i < n; i += Planes::kStep) finish(i, read<U8>(nibbles + i));
  }
  unrolled<Planes::kStripes>([&]<int k>() {
    for (std::int64_t j = 0; j < planes.stripe; j += Planes::kStep) {
      const U8 high =
          Planes::template shifted<-Planes::above(k)>(read<U8>(bytes + planes.half + j));
      const std::int64_t i = k * planes.stripe + j;
      finish(i, read<U8>(nibbles + i) | (high & U8(Planes::kHighBits)));
    }
  });
  std::memcpy(codes, out, static_cast<std::size_t>(n));
}

template <int kBits>
void pack_bits(std::uint8_t* packed, const std::int8_t* codes, int max_code, std::int64_t n) {
  n == kBlock ? pack_block<kBits>(packed, codes, max_code, kBlock)
              : pack_block<kBits>(packed, codes, max_code, n);
}
template <int kBits>
void unpack_bits(std::int8_t* codes, const std::uint8_t* packed, int max_code, std::int64_t n) {
  n == kBlock ? unpack_block<kBits>(codes, packed, max_code, kBlock)
              : unpack_block<kBits>(codes, packed, max_code, n);
}

void pack_codes(std::uint8_t* packed, const std::int8_t* codes, int bits, int max_code,
                std::int64_t n) {
  if (n == 0 || n > kBlock) return TRITGRAD_TARGET::pack_codes(packed, codes, bits, max_code, n);
  bits == 4   ? pack_bits<4>(packed, codes, max_code, n)
  : bits == 5 ? pack_bits<5>(packed, codes, max_code, n)
              : pack_bits<6>(packed, codes, max_code, n);
}

void unpack_codes(std::int8_t* codes, const std::uint8_t* packed, int bits, int max_code,
                  std::int64_t n) {
  if (n == 0 || n > kBlock) {
    return TRITGRAD_TARGET::unpack_codes(codes, packed, bits, max_code, n);
  }
  bits == 4   ? unpack_bits<4>(codes, packed, max_code, n)
  : bits == 5 ? unpack_bits<5>(codes, packed, max_code, n)
              : unpack_bits<6>(codes, packed, max_code, n);
}

}  // namespace
}  // namespace wide
}  // namespace tritgrad::TRITGRAD_TARGET
