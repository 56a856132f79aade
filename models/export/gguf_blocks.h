// Types of GGUF's tensors that we write, and the blocks of llama.cpp's ternary ones, byte by byte.
//
// A ternary row is cut into blocks of neighbours with one scale d, an fp16 number, each; a weight
// is (code - 1) d, and a code is a trit + 1:
//
//     TQ1_0   256 trits in 54 bytes (1.6875 bits each): codes as digits in base 3, the first of a
//             byte the highest; a byte is ceil(256 n / 243) of the number n that the digits make
//               qs[48]  byte j < 32:        codes j, j + 32, j + 64, j + 96, j + 128
//                       byte 32 + j, j < 16: codes 160 + j, 176 + j, 192 + j, 208 + j, 224 + j
//               qh[4]   byte j:             codes 240 + j, 244 + j, 248 + j, 252 + j, and a digit 0
//               d
//     TQ2_0   256 trits in 66 bytes (2.0625 bits each)
//               qs[64]  byte j of half h:   codes 128 h + j, + 32, + 64, + 96, the first in bits
//               0-1
//               d
//     Q2_0    64 trits in 18 bytes (2.25 bits each)
//               d
//               qs[16]  byte j:             codes 4 j to 4 j + 3, the first in bits 0-1
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/names.h"
#include "models/export/inference_product.h"

namespace tritgrad {

enum class GgufType { kF32, kF16, kTq1, kTq2, kQ2 };
inline constexpr Names<GgufType, 5> kGgufTypes{"type of GGUF",
                                               {{{GgufType::kTq2, "tq2_0"},
                                                 {GgufType::kTq1, "tq1_0"},
                                                 {GgufType::kQ2, "q2_0"},
                                                 {GgufType::kF16, "f16"},
                                                 {GgufType::kF32, "f32"}}}};

struct GgufTypeTraits {
  std::uint32_t id;         // of a tensor
  std::uint32_t file_type;  // of a file whose matrices are of the type: general.file_type
  std::int64_t block;       // weights; divides the rows of a matrix
  std::int64_t block_bytes;

  std::int64_t bytes_of(std::int64_t weights) const { return weights / block * block_bytes; }
};
const GgufTypeTraits& gguf_traits(GgufType type);
// Whether the type holds trits alone.
inline bool is_ternary(GgufType type) { return gguf_traits(type).block > 1; }

// Return numbers as the types of floats store them. Throws Error, with the name, for a number that
// is beyond fp16.
std::string encode_f32(std::span<const float> numbers);
std::string encode_f16(std::span<const float> numbers, const std::string& name);

// Returns a matrix of trits in a ternary type, whose blocks must divide its rows and the inputs
// that share a scale. Scales are rounded to fp16. Throws Error, with the name of the matrix, for a
// scale that fp16 has no number for.
std::string encode_trits(const InferenceProduct& w, GgufType type);

}  // namespace tritgrad
