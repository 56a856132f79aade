// The codes in which numbers travel between ranks: flags as bits, sums of votes as few bits, exact,
// and floats compressed, with what the compression drops.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tritgrad {

// ---- flags -------------------------------------------------------------------------------------

// Packs flags [n], each 0 or 1, as bits [(n + 7) / 8], the lowest first; bits beyond n are 0.
void pack_flags(const std::uint8_t* flags, std::int64_t n, std::uint8_t* bits);
void unpack_flags(const std::uint8_t* bits, std::int64_t n, std::uint8_t* flags);

// ---- sums of votes -----------------------------------------------------------------------------

enum class VoteCode {
  kSigns,     // 1 bit: -1, 1
  kTrits,     // five to a byte: -1, 0, 1
  kFourBits,  // up to 7 in magnitude
  kFiveBits,  // up to 15
  kSixBits,   // up to 31
  kBytes,     // up to kMostVotes
};
inline constexpr int kMostVotes = 127;

// Returns the smallest code for sums that are at most `most` (1..kMostVotes) in magnitude. Signs
// will do only where no sum is 0.
VoteCode vote_code(int most, bool has_zeros);

// Returns the bytes of n sums.
std::int64_t vote_bytes(VoteCode code, std::int64_t n);
void pack_votes(VoteCode code, const std::int8_t* votes, std::int64_t n, std::byte* out);
void unpack_votes(VoteCode code, const std::byte* in, std::int64_t n, std::int8_t* votes);

// ---- compressed floats -------------------------------------------------------------------------

enum class Compression {
  kSign,     // 1 bit each under one fp32 scale, the mean magnitude
  kSignRms,  // the same under the root mean square, as published; worse for heavy tails
  kInt8,     // groups of 32 codes of 8 bits under a bf16 scale, rounded to nearest
};

// Returns the bytes of n compressed numbers.
std::int64_t compressed_bytes(Compression compression, std::int64_t n);

// Compresses x into `out` and leaves in x what that drops: x before = decompressed + x after, up to
// the rounding of the subtraction. `used`, if not null, marks numbers that take part (1) and those
// that do not (0), which are 0 before, after and when decompressed. x must be finite.
//
// Signs are a contraction, |x after|^2 = (1 - rho^2) |x|^2 with rho = |x|_1 / (sqrt(n) |x|_2) under
// the mean magnitude; under the root mean square it is 2 (1 - rho) |x|^2, which is one only for rho
// > 1/2. The sign of 0 is +1.
void compress(Compression compression, float* x, std::int64_t n, const std::uint8_t* used,
              std::byte* out);
void decompress(Compression compression, const std::byte* in, std::int64_t n,
                const std::uint8_t* used, float* out);

}  // namespace tritgrad
