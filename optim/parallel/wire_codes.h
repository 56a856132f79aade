// The codes in which numbers travel between ranks, and how many bytes a message has in each. Both
// the exchanges and the forecast of traffic count by wire_bytes().
#pragma once

#include <cstddef>
#include <cstdint>

namespace tritgrad {

enum class WireCode {
  // Floats as they lie in memory.
  kFp32,
  kBf16,
  // Votes and their sums, which are exact.
  kSigns,     // 1 bit: -1, 1
  kTrits,     // five to a byte: -1, 0, 1
  kFourBits,  // up to 7 in magnitude
  kFiveBits,  // up to 15
  kSixBits,   // up to 31
  kBytes,     // up to kMostVotes
  // Compressed floats.
  kMeanSigns,  // 1 bit each under one fp32 scale, the mean magnitude
  kRmsSigns,   // the same under the root mean square, as published; worse for heavy tails
  kInt8,       // groups of 32 codes of 8 bits under a bf16 scale, rounded to nearest
};

// Returns the bytes of n numbers.
std::int64_t wire_bytes(WireCode code, std::int64_t n);

// ---- flags -------------------------------------------------------------------------------------

// Packs flags [n], each 0 or 1, as bits [(n + 7) / 8], the lowest first; bits beyond n are 0.
void pack_flags(const std::uint8_t* flags, std::int64_t n, std::uint8_t* bits);
void unpack_flags(const std::uint8_t* bits, std::int64_t n, std::uint8_t* flags);

// ---- sums of votes -----------------------------------------------------------------------------

inline constexpr int kMostVotes = 127;

// Returns the smallest code for sums that are at most `most` (1..kMostVotes) in magnitude. Signs
// will do only where no sum is 0.
WireCode vote_code(int most, bool has_zeros);

void pack_votes(WireCode code, const std::int8_t* votes, std::int64_t n, std::byte* out);
void unpack_votes(WireCode code, const std::byte* in, std::int64_t n, std::int8_t* votes);

// ---- compressed floats -------------------------------------------------------------------------

// Compresses x into `out` and leaves in x the error of that: x before = decompressed + x after, up
// to the rounding of the subtraction. `used`, if not null, marks numbers that take part (1) and
// those that do not (0), which are 0 before, after and when decompressed. x must be finite.
//
// Signs are a contraction, |x after|^2 = (1 - rho^2) |x|^2 with rho = |x|_1 / (sqrt(n) |x|_2) under
// the mean magnitude; under the root mean square it is 2 (1 - rho) |x|^2, which is one only for rho
// > 1/2. The sign of 0 is +1.
void compress(WireCode code, float* x, std::int64_t n, const std::uint8_t* used, std::byte* out);
void decompress(WireCode code, const std::byte* in, std::int64_t n, const std::uint8_t* used,
                float* out);

}  // namespace tritgrad
