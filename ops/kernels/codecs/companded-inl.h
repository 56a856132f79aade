// Companded numbers, rounded to nearest, in groups of ordinary size; all others go through
// companded_loops-inl.h.
//
// A group is ordinary if it is whole and its largest magnitude is 0, or finite and not tiny. Its
// shares then are at most 1 + 2^-9, whose codes round to the top code, and one product makes them.
#pragma once

#include "ops/kernels/codecs/codec_verbs-inl.h"
#include "ops/kernels/codecs/companded_loops-inl.h"
#include "ops/kernels/codecs/fused_division-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace wide {
namespace {

constexpr std::int64_t kVectorsOfGroup = kCompandedGroup / kLanes<F32>;

// Bits without the sign.
inline U32 magnitude_bits(const F32& x) { return bits_as<U32>(x) & U32(0x7FFFFFFFu); }
inline F32 magnitude(const F32& x) { return bits_as<F32>(magnitude_bits(x)); }

template <bool kFused>
F32 quotient(const F32& a, const F32& b) {
  return kFused ? fused_quotient(a, b) : a / b;
}

// A curve, a vector at a time; kFused: without the divider.
template <typename Curve>
struct Coder;

template <>
struct Coder<SoftsignCurve> {
  // With the sign: rounding is the same on both sides.
  template <bool kFused>
  static I32 encode(const F32& x, const F32& inverse) {
    const F32 share = x * inverse;
    return round_to_i32(quotient<kFused>(F32(254.0f) * share, F32(1.0f) + magnitude(share)));
  }
  template <bool kFused>
  static F32 share(const I32& code) {
    const F32 number = to_float(code);
    return quotient<kFused>(number, F32(254.0f) - magnitude(number));
  }
  template <bool kNoNan>
  static U32 larger_size(const F32& a, const F32& b) {
    return kNoNan ? bits_as<U32>(larger_magnitude(a, b))
                  : max(magnitude_bits(a), magnitude_bits(b));
  }
};

template <>
struct Coder<RootCurve> {
  template <bool kFused>
  static I32 encode(const F32& x, const F32& inverse) {
    const F32 share = x * inverse;
    const F32 root = kFused ? fused_root(share) : sqrt(share);
    // A positive number never has code 0; the fused root of zero becomes the smallest integer.
    return max(round_to_i32(F32(255.0f) * root), min(bits_as<I32>(x), I32(1)));
  }
  template <bool kFused>
  static F32 share(const I32& code) {
    const F32 number = to_float(code);
    return number * number * F32(1.0f / 65025.0f);
  }
  // Negative numbers look larger than infinity.
  template <bool kNoNan>
  static U32 larger_size(const F32& a, const F32& b) {
    return max(bits_as<U32>(a), bits_as<U32>(b));
  }
};

// Returns the largest size in each lane of a group.
template <typename Curve, bool kNoNan>
U32 largest_of_lanes(const float* in) {
  static_assert(kVectorsOfGroup % 2 == 0);
  const auto of_pair = [in](std::int64_t k) {
    return Coder<Curve>::template larger_size<kNoNan>(read<F32>(in + k * kLanes<F32>),
                                                      read<F32>(in + (k + 1) * kLanes<F32>));
  };
  U32 largest = of_pair(0);
#pragma GCC unroll 2
  for (std::int64_t k = 2; k < kVectorsOfGroup; k += 2) largest = max(largest, of_pair(k));
  return largest;
}

// The scales of kGroups groups and their reciprocals (of zero: zero). Returns whether all are
// ordinary; if not, what it wrote means nothing. kNoNan: none is NaN.
template <typename Curve, std::int64_t kGroups, bool kNoNan = false>
bool choose_ordinary_scales(std::uint16_t* scales, float* inverse, const float* in) {
  const U32 one(1u), half(0x3FFFu), upper(0xFFFF8000u), most(kLargestGroupScale << 15);
  // From 2^-99 on, no scale must be stretched before it is inverted (choose_scales).
  const I32 zero(0), tiny(28 << 23), finite(static_cast<int>(kFp32Infinity) - 1);
  U32 sizes[kLanes<U32>];
#pragma GCC unroll 16
  for (std::int64_t g = 0; g < kLanes<U32>; ++g) {
    sizes[g] = g < kGroups ? largest_of_lanes<Curve, kNoNan>(in + g * kCompandedGroup) : U32(0u);
  }
  const U32 largest = largest_of_each(sizes);
  // Unsigned, a negative number is larger than infinity; signed, it is small.
  const I32 bits = bits_as<I32>(largest);
  const I32 sizes_above_zero = select(bits == zero, tiny, bits);
  const U32 rounded = min((largest + half + (largest >> 15 & one)) & upper, most);
  const F32 scale = bits_as<F32>(rounded);
  write(inverse, select(scale == F32(0.0f), F32(0.0f), F32(1.0f) / scale));
  std::uint16_t narrow[kLanes<U32>];
  write_narrow(narrow, rounded >> 15);
  std::memcpy(scales, narrow, kGroups * sizeof(std::uint16_t));
  return !any(sizes_above_zero < tiny) && !any(sizes_above_zero > finite);
}

// Not inlined: the compiler would keep what both ways read.
template <typename Curve>
[[gnu::noinline]] void encode_others(typename Curve::Code* codes, std::uint16_t* scales,
                                     const float* in, std::int64_t n) {
  encode_all_nearest<Curve>(codes, scales, in, n);
}

// kFourVectors numbers of `in`, from number i on; inverse: of all its groups. kShares: the divider
// shares the work with products, where nothing else asks for them.
template <typename Curve, bool kShares = true>
inline void encode_ordinary_at(typename Curve::Code* codes, const float* inverse, const float* in,
                               std::int64_t i) {
  const auto code = [&]<bool kFused>(std::int64_t at) {
    return Coder<Curve>::template encode<kFused>(read<F32>(in + at),
                                                 F32(inverse[at / kCompandedGroup]));
  };
  constexpr std::int64_t k = kLanes<F32>;
  write_bytes(codes, {code.template operator()<false>(i), code.template operator()<kShares>(i + k),
                      code.template operator()<false>(i + 2 * k),
                      code.template operator()<kShares>(i + 3 * k)});
}

// First the scales of many groups, then the codes: in between a processor must wait.
template <typename Curve>
void encode(typename Curve::Code* codes, std::uint16_t* scales, const float* in, std::int64_t n) {
  constexpr std::int64_t kMost = 64;
  alignas(64) float inverse[kMost];
  while (n >= 8 * kCompandedGroup) {
    const std::int64_t groups = std::min(kMost, n / kCompandedGroup / 8 * 8);
    bool all = true;
    std::int64_t g = 0;
    for (; g + kLanes<U32> <= groups; g += kLanes<U32>) {
      all &= choose_ordinary_scales<Curve, kLanes<U32>>(scales + g, inverse + g,
                                                        in + g * kCompandedGroup);
    }
    if (g < groups) {
      all &= choose_ordinary_scales<Curve, 8>(scales + g, inverse + g, in + g * kCompandedGroup);
    }
    const std::int64_t count = groups * kCompandedGroup;
    if (all) {
      for (std::int64_t i = 0; i < count; i += kFourVectors) {
        encode_ordinary_at<Curve>(codes + i, inverse, in, i);
      }
    } else {
      encode_others<Curve>(codes, scales, in, count);
    }
    codes += count;
    scales += groups;
    in += count;
    n -= count;
  }
  if (n > 0) encode_others<Curve>(codes, scales, in, n);
}

// The scales of two neighbouring groups, in all lanes.
inline void read_scales(F32 (&scales)[2], const std::uint16_t* p) {
  const U32 both = read_pair(p);
  const U32 kept(0x7FFF8000u);
  scales[0] = bits_as<F32>((both << 15) & kept);
  scales[1] = bits_as<F32>((both >> 1) & kept);
}

// All pairs of groups; returns how many numbers they have.
template <typename Curve>
std::int64_t decode(float* out, const typename Curve::Code* codes, const std::uint16_t* scales,
                    std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 2 * kCompandedGroup <= n; i += 2 * kCompandedGroup) {
    read_ahead(codes + i, 2 * kCompandedGroup);
    F32 scale[2];
    read_scales(scale, scales + i / kCompandedGroup);
    const auto decode_at = [&]<bool kFused>(std::int64_t at) {
      const F32 share = Coder<Curve>::template share<kFused>(read_i32(codes + at));
      write(out + at, scale[(at - i) / kCompandedGroup] * share);
    };
#pragma GCC unroll 4
    for (std::int64_t at = i; at < i + 2 * kCompandedGroup; at += 2 * kLanes<F32>) {
      decode_at.template operator()<false>(at);
      decode_at.template operator()<true>(at + kLanes<F32>);
    }
  }
  return i;
}

void encode_companded(std::int8_t* codes, std::uint16_t* scales, const float* in,
                      const std::uint16_t* noise, const std::uint16_t* scale_noise,
                      std::int64_t n) {
  noise == nullptr ? encode<SoftsignCurve>(codes, scales, in, n)
                   : TRITGRAD_TARGET::encode_companded(codes, scales, in, noise, scale_noise, n);
}

void decode_companded(float* out, const std::int8_t* codes, const std::uint16_t* scales,
                      std::int64_t n) {
  const std::int64_t done = decode<SoftsignCurve>(out, codes, scales, n);
  if (done == n) return;
  TRITGRAD_TARGET::decode_companded(out + done, codes + done, scales + done / kCompandedGroup,
                                    n - done);
}

void encode_root(std::uint8_t* codes, std::uint16_t* scales, const float* in,
                 const std::uint16_t* noise, const std::uint16_t* scale_noise, std::int64_t n) {
  noise == nullptr ? encode<RootCurve>(codes, scales, in, n)
                   : TRITGRAD_TARGET::encode_root(codes, scales, in, noise, scale_noise, n);
}

void decode_root(float* out, const std::uint8_t* codes, const std::uint16_t* scales,
                 std::int64_t n) {
  const std::int64_t done = decode<RootCurve>(out, codes, scales, n);
  if (done == n) return;
  TRITGRAD_TARGET::decode_root(out + done, codes + done, scales + done / kCompandedGroup, n - done);
}

}  // namespace
}  // namespace wide
}  // namespace tritgrad::TRITGRAD_TARGET
