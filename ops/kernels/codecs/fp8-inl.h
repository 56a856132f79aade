// fp8 of lowbit_loops-inl.h in vectors: the same arithmetic, a vector of bytes at a time. What
// fills none goes through the loops, which are the specification.
#pragma once

#include <algorithm>
#include <cstring>

#include "ops/kernels/codecs/codec_verbs-inl.h"
#include "ops/kernels/codecs/lowbit-inl.h"
#include "ops/kernels/codecs/lowbit_loops-inl.h"
#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace wide {
namespace {

constexpr std::int64_t kFp8Step = kLanes<F32>;

// largest_magnitude() of any number of them.
float largest_of(const float* x, std::int64_t n) {
  I32 largest(kZeroInOrder);
  std::int64_t i = 0;
  for (; i + kFp8Step <= n; i += kFp8Step) {
    largest = max(largest, magnitudes_in_order(read<F32>(x + i)));
  }
  std::int32_t lanes[kFp8Step];
  write(lanes, min(largest - I32(kZeroInOrder), I32(kLargestBits)));
  const float of_lanes = std::bit_cast<float>(*std::max_element(lanes, lanes + kFp8Step));
  return std::max(of_lanes, largest_magnitude(x + i, n - i));
}

// fp8_nearest() or fp8_stochastic() of a vector.
template <bool kNoise>
U32 round_fp8(const F32& magnitude, const std::uint16_t* noise) {
  const U32 bits = bits_as<U32>(magnitude);
  const auto is_small =
      bits_as<I32>(magnitude) < I32(std::bit_cast<std::int32_t>(kFp8SmallestNormal));
  U32 normal, small;
  if constexpr (kNoise) {
    const U32 added = (bits_as<U32>(read_i32(noise)) << 4) | U32(8u);
    normal = (bits + added) >> 20;
    small = (bits_as<U32>(floor_of_small(magnitude * F32(0x1p29f))) + added) >> 20;
  } else {
    constexpr float kShift = 0x1p14f;
    normal = (bits + U32(0x7FFFFu) + ((bits >> 20) & U32(1u))) >> 20;
    small = bits_as<U32>(magnitude + F32(kShift)) - U32(std::bit_cast<std::uint32_t>(kShift));
  }
  const I32 chosen = select(is_small, bits_as<I32>(small),
                            bits_as<I32>(normal - U32(static_cast<std::uint32_t>(kFp8Rebias))));
  return bits_as<U32>(chosen);
}

// As many numbers as a vector has bytes. The divisor is infinite where the scale is 0.
template <bool kNoise>
void encode_fp8_bytes(std::uint8_t* codes, const float* x, const F32& divisor,
                      const std::uint16_t* noise) {
  I32 wide_codes[4];
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    const F32 number = read<F32>(x + k * kFp8Step);
    const U32 bits = bits_as<U32>(number);
    const F32 size = bits_as<F32>(bits & U32(0x7FFFFFFFu)) / divisor;
    const F32 magnitude = min(select(size == size, size, F32(0.0f)), F32(kFp8Max));
    const U32 code = round_fp8<kNoise>(magnitude, kNoise ? noise + k * kFp8Step : nullptr);
    const I32 or_nan = select(bits_as<I32>(bits & U32(0x7FFFFFFFu)) > I32(kInfinityBits), I32(0x7F),
                              bits_as<I32>(code));
    wide_codes[k] = or_nan | bits_as<I32>((bits >> 24) & U32(0x80u));
  }
  write_bytes(codes, wide_codes);
}

template <bool kNoise>
void encode_fp8_under(std::uint8_t* codes, float divisor, const float* x,
                      const std::uint16_t* noise, std::int64_t n) {
  constexpr std::int64_t kTogether = kLanes<U8>;
  std::int64_t i = 0;
  for (; i + kTogether <= n; i += kTogether) {
    encode_fp8_bytes<kNoise>(codes + i, x + i, F32(divisor), kNoise ? noise + i : nullptr);
  }
  if (i == n) return;
  float rest[kTogether] = {};
  std::uint16_t its_noise[kTogether] = {};
  std::uint8_t its_codes[kTogether];
  std::copy_n(x + i, n - i, rest);
  if constexpr (kNoise) std::copy_n(noise + i, n - i, its_noise);
  encode_fp8_bytes<kNoise>(its_codes, rest, F32(divisor), its_noise);
  std::copy_n(its_codes, n - i, codes + i);
}

void encode_fp8(std::uint8_t* codes, std::uint16_t* scale, const float* x,
                const std::uint16_t* noise, std::int64_t n) {
  if (n < kLanes<U8>) return TRITGRAD_TARGET::encode_fp8(codes, scale, x, noise, n);
  *scale = shared_scale(largest_of(x, n), kFp8Max, noise != nullptr);
  const float divisor = *scale == 0 ? __builtin_inff() : float_of_bf16(*scale);
  noise == nullptr ? encode_fp8_under<false>(codes, divisor, x, noise, n)
                   : encode_fp8_under<true>(codes, divisor, x, noise, n);
}

void decode_fp8(float* out, const std::uint8_t* codes, std::uint16_t scale, std::int64_t n) {
  const F32 factor(float_of_bf16(scale));
  std::int64_t i = 0;
  for (; i + kFp8Step <= n; i += kFp8Step) {
    const I32 code = read_i32(codes + i);
    const I32 magnitude = code & I32(0x7F);
    const I32 normal = (magnitude << 20) + I32(120 << 23);
    const I32 small = bits_as<I32>(to_float(magnitude) * F32(0x1p-9f));
    const I32 number = select(magnitude < I32(8), small, normal);
    const I32 or_nan = select(magnitude == I32(0x7F), I32(0x7FC00000), number);
    const U32 sign = bits_as<U32>(code & I32(0x80)) << 24;
    write(out + i, bits_as<F32>(bits_as<U32>(or_nan) | sign) * factor);
  }
  TRITGRAD_TARGET::decode_fp8(out + i, codes + i, scale, n - i);
}

}  // namespace
}  // namespace wide
}  // namespace tritgrad::TRITGRAD_TARGET
