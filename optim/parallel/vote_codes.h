// Sums of votes as few bits for the wire; exact.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tritgrad {

enum class VoteCode {
  kSigns,     // 1 bit: -1, 1
  kTrits,     // five to a byte: -1, 0, 1
  kFourBits,  // up to 7 in magnitude
  kFiveBits,  // up to 15
  kSixBits,   // up to 31
  kBytes,     // up to kMostVotes
};
inline constexpr int kMostVotes = 127;

// The smallest code for sums that are at most `most` (1..kMostVotes) in magnitude. Signs will do
// only where none is 0.
VoteCode vote_code(int most, bool has_zeros);

// Bytes of n sums.
std::int64_t vote_bytes(VoteCode code, std::int64_t n);
void pack_votes(VoteCode code, const std::int8_t* votes, std::int64_t n, std::byte* out);
void unpack_votes(VoteCode code, const std::byte* in, std::int64_t n, std::int8_t* votes);

}  // namespace tritgrad
