// Kernels that turn stored numbers into floats or trits and back, and the random bits that they
// round with.
#pragma once

#include <cstdint>

#include "engine/kernels/kernels.h"
#include "engine/random.h"

namespace tritgrad {

// Neighbouring elements that share a scale in companded formats.
inline constexpr std::int64_t kCompandedGroup = 32;

struct CodecKernels {
  // out[i] = random_u16(key, first + i); first is a multiple of 8.
  void (*random_u16)(std::uint16_t* out, std::int64_t n, const RandomKey& key, std::uint64_t first);

  // ---- trits -----------------------------------------------------------------------------------
  // Packed trits lie five to a byte, in stripes: with b = ceil(n / 5), element i is digit i / b of
  // byte i % b; a byte is sum_k (t_k + 1) 3^k, in 0..242. Digits beyond n are written as zero
  // trits; a byte above 242 reads as 242, so that no input gives anything but trits.
  // decode_trits decodes rows of n trits: their bytes begin ld_packed apart, the trits ld apart.
  void (*decode_trits)(std::int8_t* trits, std::int64_t ld, const std::uint8_t* packed,
                       std::int64_t ld_packed, std::int64_t rows, std::int64_t n);
  void (*encode_trits)(std::uint8_t* packed, const std::int8_t* trits, std::int64_t n);
  void (*trits_to_float)(float* out, const std::int8_t* trits, std::int64_t n);
  // A latent code c stands for the nearest trit, (c > threshold) - (c < -threshold).
  void (*latent_to_trits)(std::int8_t* trits, const std::int8_t* codes, int threshold,
                          std::int64_t n);
  void (*latent_to_float)(float* out, const std::int8_t* codes, int threshold, std::int64_t n);
  // ternary_master: gamma, 0 or -gamma, whichever is nearest to each master (0 for half of gamma);
  // NaN where that or gamma is not finite. gamma >= 2^-125, so that half of it is exact.
  void (*decode_ternary_master)(float* out, const float* master, float gamma, std::int64_t n);

  // ---- bf16, and bf16 with a correction --------------------------------------------------------
  void (*bf16_to_float)(float* out, const std::uint16_t* in, std::int64_t n);
  // Null noise rounds to nearest, ties to even; otherwise rounding is stochastic: noise (16 bits)
  // is added to the dropped bits. NaN stays NaN (quiet), infinities stay.
  void (*float_to_bf16)(std::uint16_t* out, const float* in, const std::uint16_t* noise,
                        std::int64_t n);
  // Split numbers: `value` is the nearest bf16 number (ties to even) of the master, `correction`
  // the rest, in 127ths (split8) or 32767ths (split16) of half the way to the next bf16 number on
  // its side: master = value + correction / N * half the way, rounded once to fp32. Corrections are
  // rounded to nearest, or by 16 bits of noise: up if and only if fraction + noise / 65536 >= 1.
  // Whatever decode gives, encode turns into the same bytes, noise or not. Magnitudes half-way or
  // more above the largest bf16 number saturate; infinities and NaN (quiet) have correction 0, and
  // decode reads them without it.
  void (*encode_split8)(std::uint16_t* value, std::int8_t* correction, const float* in,
                        const std::uint16_t* noise, std::int64_t n);
  void (*decode_split8)(float* out, const std::uint16_t* value, const std::int8_t* correction,
                        std::int64_t n);
  void (*encode_split16)(std::uint16_t* value, std::int16_t* correction, const float* in,
                         std::int64_t n);
  void (*decode_split16)(float* out, const std::uint16_t* value, const std::int16_t* correction,
                         std::int64_t n);

  // ---- companded numbers -----------------------------------------------------------------------
  // Groups of kCompandedGroup (the last one may be shorter) lie under a scale of 16 bits, those of
  // an fp32 number from bit 30 down. companded: signed codes -127..127, x = scale * z / (2 - |z|)
  // with z = code / 127. root: codes 0..255, x = scale * (code / 255)^2. The scale is the group's
  // largest magnitude, rounded to nearest or by noise (one number per group); codes are rounded to
  // the nearest integer (ties to even) or by noise (one per element; both or neither may be null):
  // with fraction the position between the decoded neighbours, up if and only if fraction >= (noise
  // + 0.5) / 65536. Whatever decode gives, encode turns into the same bytes, noise or not. root: a
  // positive number never has code 0. A group that holds an infinity, a NaN or, with root, a
  // negative number becomes NaN as a whole (scale 0xFF80, codes 0).
  void (*encode_companded)(std::int8_t* codes, std::uint16_t* scales, const float* in,
                           const std::uint16_t* noise, const std::uint16_t* scale_noise,
                           std::int64_t n);
  void (*decode_companded)(float* out, const std::int8_t* codes, const std::uint16_t* scales,
                           std::int64_t n);
  void (*encode_root)(std::uint8_t* codes, std::uint16_t* scales, const float* in,
                      const std::uint16_t* noise, const std::uint16_t* scale_noise, std::int64_t n);
  void (*decode_root)(float* out, const std::uint8_t* codes, const std::uint16_t* scales,
                      std::int64_t n);

  // ---- few bits --------------------------------------------------------------------------------
  // Signed codes of `bits` = 4, 5 or 6 bits are stored as u = code + 2^(bits - 1), in stripes. The
  // low nibbles come first: with h = ceil(n / 2), byte j holds elements j (low half) and j + h. The
  // bits above, if any, follow: with w = bits - 4 and s = ceil(n w / 8), byte j holds element j + k
  // s at bit k w. Bits beyond n are 0. Writing and reading clip codes to +-max_code.
  void (*pack_codes)(std::uint8_t* packed, const std::int8_t* codes, int bits, int max_code,
                     std::int64_t n);
  void (*unpack_codes)(std::int8_t* codes, const std::uint8_t* packed, int bits, int max_code,
                       std::int64_t n);
  // Groups of 32 codes in +-max_code (7 or 127) have a bf16 scale each: out = code * scale.
  // Nearest (noise == nullptr; ties to even): the scale is the bf16 nearest to absmax / max_code,
  // so that absmax gets the code max_code exactly, and encoding what was decoded changes nothing.
  // Stochastic: floor(x / scale + u), u = (noise + 0.5) / 65536, with the scale rounded up, so that
  // nothing is clipped and the expectation is right. A group below max_code * 2^-126 becomes zeros
  // with scale 0. Infinity counts as the largest float, NaN as 0; reading clips codes.
  void (*encode_groups)(std::int8_t* codes, std::uint16_t* scales, const float* x, int max_code,
                        const std::uint16_t* noise, std::int64_t n);
  void (*decode_groups)(float* out, const std::int8_t* codes, const std::uint16_t* scales,
                        int max_code, std::int64_t n);
  // fp8 e4m3fn (bias 7, up to 448, subnormals of 2^-9, no infinity, NaN 0x7F and 0xFF) has one bf16
  // scale for all n, chosen like those of groups with 448 as the largest code. Stochastic rounding
  // adds the noise to the dropped bits of the mantissa. NaN stays NaN and has no part in the scale.
  void (*encode_fp8)(std::uint8_t* codes, std::uint16_t* scale, const float* x,
                     const std::uint16_t* noise, std::int64_t n);
  void (*decode_fp8)(float* out, const std::uint8_t* codes, std::uint16_t scale, std::int64_t n);
};

}  // namespace tritgrad
