// Numbers as few bits for the wire, and what was dropped.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tritgrad {

enum class Compression {
  kSign,     // 1 bit each under one fp32 scale, the mean magnitude
  kSignRms,  // the same under the root mean square, as published; worse for heavy tails
  kInt8,     // groups of 32 codes of 8 bits under a bf16 scale, rounded to nearest
};

// Bytes of n compressed numbers.
std::int64_t compressed_bytes(Compression compression, std::int64_t n);

// Compresses x into `out` and leaves in x what that drops: x before = decompressed + x after, up to
// the rounding of the subtraction. `used`, if not null, marks numbers that take part (1) and those
// that do not (0), which are 0 before, after and when decompressed. x must be finite.
//
// Signs: a contraction, |x after|^2 = (1 - rho^2) |x|^2 with rho = |x|_1 / (sqrt(n) |x|_2) under
// the mean magnitude; under the root mean square it is 2 (1 - rho) |x|^2, which is one only for rho
// > 1/2. sign(0) = +1.
void compress(Compression compression, float* x, std::int64_t n, const std::uint8_t* used,
              std::byte* out);
void decompress(Compression compression, const std::byte* in, std::int64_t n,
                const std::uint8_t* used, float* out);

}  // namespace tritgrad
