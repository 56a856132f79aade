#include "optim/parallel/vote_codes.h"

#include <algorithm>
#include <array>

#include "engine/check.h"
#include "engine/formats/format.h"
#include "engine/kernels/codecs.h"
#include "optim/parallel/flag_bits.h"

namespace tritgrad {
namespace {

// Of the codes that the low-bit formats have too; 0 for others.
int code_bits(VoteCode code) {
  switch (code) {
    case VoteCode::kFourBits:
      return 4;
    case VoteCode::kFiveBits:
      return 5;
    case VoteCode::kSixBits:
      return 6;
    default:
      return 0;
  }
}

// Of signed codes; -1 where a code has no bits.
int largest(int bits) { return (1 << bits) / 2 - 1; }

}  // namespace

VoteCode vote_code(int most, bool has_zeros) {
  check(most >= 1 && most <= kMostVotes, "vote_code: sums of up to ", most, ", at most ",
        kMostVotes, " supported; use fewer micro-batches");
  if (most == 1) return has_zeros ? VoteCode::kTrits : VoteCode::kSigns;
  for (const VoteCode code : {VoteCode::kFourBits, VoteCode::kFiveBits, VoteCode::kSixBits}) {
    if (most <= largest(code_bits(code))) return code;
  }
  return VoteCode::kBytes;
}

std::int64_t vote_bytes(VoteCode code, std::int64_t n) {
  if (code == VoteCode::kSigns) return (n + 7) / 8;
  if (code == VoteCode::kTrits) return (n + 4) / 5;
  const int bits = code_bits(code);
  return bits == 0 ? n : (n + 1) / 2 + (n * (bits - 4) + 7) / 8;
}

void pack_votes(VoteCode code, const std::int8_t* votes, std::int64_t n, std::byte* out) {
  auto* bytes = reinterpret_cast<std::uint8_t*>(out);
  if (code == VoteCode::kTrits) return kernels().codecs.encode_trits(bytes, votes, n);
  if (const int bits = code_bits(code); bits > 0) {
    return kernels().codecs.pack_codes(bytes, votes, bits, largest(bits), n);
  }
  if (code == VoteCode::kBytes) {
    std::copy_n(votes, n, reinterpret_cast<std::int8_t*>(out));
    return;
  }
  std::array<std::uint8_t, kBlock> flags;
  for (std::int64_t first = 0; first < n; first += kBlock) {
    const std::int64_t size = std::min(kBlock, n - first);
    for (std::int64_t i = 0; i < size; ++i) {
      flags[static_cast<std::size_t>(i)] = votes[first + i] > 0 ? 1 : 0;
    }
    pack_flags(flags.data(), size, bytes + first / 8);
  }
}

void unpack_votes(VoteCode code, const std::byte* in, std::int64_t n, std::int8_t* votes) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(in);
  if (code == VoteCode::kTrits) return kernels().codecs.decode_trits(votes, 0, bytes, 0, 1, n);
  if (const int bits = code_bits(code); bits > 0) {
    return kernels().codecs.unpack_codes(votes, bytes, bits, largest(bits), n);
  }
  if (code == VoteCode::kBytes) {
    std::copy_n(reinterpret_cast<const std::int8_t*>(in), n, votes);
    return;
  }
  std::array<std::uint8_t, kBlock> flags;
  for (std::int64_t first = 0; first < n; first += kBlock) {
    const std::int64_t size = std::min(kBlock, n - first);
    unpack_flags(bytes + first / 8, size, flags.data());
    for (std::int64_t i = 0; i < size; ++i) {
      votes[first + i] = static_cast<std::int8_t>(2 * flags[static_cast<std::size_t>(i)] - 1);
    }
  }
}

}  // namespace tritgrad
