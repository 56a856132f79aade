#include "optim/parallel/wire_codes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "engine/check.h"
#include "engine/formats/format.h"
#include "engine/kernels/codecs.h"
#include "engine/kernels/reductions.h"

namespace tritgrad {
namespace {

static_assert(std::endian::native == std::endian::little, "flag i is byte i of a word");

constexpr int kTopCode = 127;
constexpr std::int64_t kGroupsPerBlock = kBlock / kCompandedGroup;
static_assert(kBlock % kCompandedGroup == 0 && kBlock % 8 == 0, "blocks begin at whole bytes");

// Messages are written and read block by block, so that what is between numbers and codes fits on
// the stack: numbers [first, first + n) of `all`.
struct Piece {
  std::int64_t first, n, all;
};

template <typename Body>
void for_each_piece(std::int64_t all, const Body& body) {
  for (std::int64_t first = 0; first < all; first += kBlock) {
    body(Piece{first, std::min(kBlock, all - first), all});
  }
}

std::int64_t groups_of(std::int64_t n) { return (n + kCompandedGroup - 1) / kCompandedGroup; }

// Returns the scale of the numbers that take part; the others are 0 and add nothing.
float scale_of(WireCode code, const float* x, std::int64_t n, const std::uint8_t* used) {
  const bool mean_magnitude = code == WireCode::kMeanSigns;
  std::int64_t count = used == nullptr ? n : 0;
  double sum = 0.0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double value = double{x[i]};
    sum += mean_magnitude ? std::abs(value) : value * value;
    if (used != nullptr) count += used[i];
  }
  if (count == 0) return 0.0f;
  const double mean = sum / static_cast<double>(count);
  return static_cast<float>(mean_magnitude ? mean : std::sqrt(mean));
}

// ---- signs: scale | bits, the lowest first, 1 = negative ---------------------------------------

void write_signs(std::byte* message, const Piece& piece, const float* x) {
  std::array<std::uint8_t, kBlock> negative;
  for (std::int64_t i = 0; i < piece.n; ++i) {
    negative[static_cast<std::size_t>(i)] = x[i] < 0.0f ? 1 : 0;
  }
  auto* bits = reinterpret_cast<std::uint8_t*>(message + sizeof(float));
  pack_flags(negative.data(), piece.n, bits + piece.first / 8);
}

void read_signs(const std::byte* message, const Piece& piece, const std::uint8_t* used,
                float* out) {
  float scale;
  std::memcpy(&scale, message, sizeof(scale));
  std::array<std::uint8_t, kBlock> negative;
  const auto* bits = reinterpret_cast<const std::uint8_t*>(message + sizeof(float));
  unpack_flags(bits + piece.first / 8, piece.n, negative.data());
  for (std::int64_t i = 0; i < piece.n; ++i) {
    out[i] = negative[static_cast<std::size_t>(i)] != 0 ? -scale : scale;
  }
  if (used == nullptr) return;
  for (std::int64_t i = 0; i < piece.n; ++i) out[i] = used[piece.first + i] != 0 ? out[i] : 0.0f;
}

// ---- int8: scales | codes ----------------------------------------------------------------------

// Messages begin at any byte; scales want even ones.
using GroupScales = std::array<std::uint16_t, kGroupsPerBlock>;

std::int64_t scales_at(const Piece& piece) {
  return groups_of(piece.first) * static_cast<std::int64_t>(sizeof(std::uint16_t));
}
std::int64_t codes_at(const Piece& piece) {
  return groups_of(piece.all) * static_cast<std::int64_t>(sizeof(std::uint16_t)) + piece.first;
}
std::size_t scale_bytes(const Piece& piece) {
  return static_cast<std::size_t>(groups_of(piece.n)) * sizeof(std::uint16_t);
}

void write_groups(std::byte* message, const Piece& piece, const float* x) {
  GroupScales scales;
  auto* codes = reinterpret_cast<std::int8_t*>(message + codes_at(piece));
  kernels().codecs.encode_groups(codes, scales.data(), x, kTopCode, nullptr, piece.n);
  std::memcpy(message + scales_at(piece), scales.data(), scale_bytes(piece));
}

void read_groups(const std::byte* message, const Piece& piece, float* out) {
  GroupScales scales;
  std::memcpy(scales.data(), message + scales_at(piece), scale_bytes(piece));
  const auto* codes = reinterpret_cast<const std::int8_t*>(message + codes_at(piece));
  kernels().codecs.decode_groups(out, codes, scales.data(), kTopCode, piece.n);
}

void read_piece(WireCode code, const std::byte* message, const Piece& piece,
                const std::uint8_t* used, float* out) {
  if (code == WireCode::kInt8) return read_groups(message, piece, out);
  read_signs(message, piece, used, out);
}

// Returns the bits of the codes that the low-bit formats have too; 0 for others.
int code_bits(WireCode code) {
  const bool is_low_bit = code >= WireCode::kFourBits && code <= WireCode::kSixBits;
  return is_low_bit ? 4 + static_cast<int>(code) - static_cast<int>(WireCode::kFourBits) : 0;
}

// Returns the largest signed code of so many bits.
int largest_code(int bits) { return (1 << bits) / 2 - 1; }

}  // namespace

std::int64_t wire_bytes(WireCode code, std::int64_t n) {
  switch (code) {
    case WireCode::kFp32:
      return 4 * n;
    case WireCode::kBf16:
      return 2 * n;
    case WireCode::kSigns:
      return (n + 7) / 8;
    case WireCode::kTrits:
      return (n + 4) / 5;
    case WireCode::kFourBits:
    case WireCode::kFiveBits:
    case WireCode::kSixBits:
      return (n + 1) / 2 + (n * (code_bits(code) - 4) + 7) / 8;
    case WireCode::kBytes:
      return n;
    case WireCode::kMeanSigns:
    case WireCode::kRmsSigns:
      return n == 0 ? 0 : 4 + (n + 7) / 8;
    case WireCode::kInt8:
      return n + 2 * groups_of(n);
  }
  fail("wire_bytes: unknown code ", static_cast<int>(code));
}

// Eight flags become bits, or bits flags, by one multiplication.
void pack_flags(const std::uint8_t* flags, std::int64_t n, std::uint8_t* bits) {
  // Flag i goes from bit 8 i to bit 56 + i. No two terms of the product meet.
  const auto pack = [](std::uint64_t eight) {
    return static_cast<std::uint8_t>(eight * 0x0102'0408'1020'4080u >> 56);
  };
  std::uint64_t word = 0;
  for (; n >= 8; n -= 8, flags += 8) {
    std::memcpy(&word, flags, 8);
    *bits++ = pack(word);
  }
  if (n == 0) return;
  word = 0;
  std::memcpy(&word, flags, static_cast<std::size_t>(n));
  *bits = pack(word);
}

void unpack_flags(const std::uint8_t* bits, std::int64_t n, std::uint8_t* flags) {
  // Byte i keeps bit i of its copy, and carries into its own highest bit if that is set.
  const auto unpack = [](std::uint64_t byte) {
    const std::uint64_t kept = byte * 0x0101'0101'0101'0101u & 0x8040'2010'0804'0201u;
    return (kept + 0x7F7F'7F7F'7F7F'7F7Fu) >> 7 & 0x0101'0101'0101'0101u;
  };
  std::uint64_t word = 0;
  for (; n >= 8; n -= 8, flags += 8) {
    word = unpack(*bits++);
    std::memcpy(flags, &word, 8);
  }
  if (n == 0) return;
  word = unpack(*bits);
  std::memcpy(flags, &word, static_cast<std::size_t>(n));
}

WireCode vote_code(int most, bool has_zeros) {
  check(most >= 1 && most <= kMostVotes, "vote_code: sums of up to ", most, ", at most ",
        kMostVotes, " supported; use fewer micro-batches");
  if (most == 1) return has_zeros ? WireCode::kTrits : WireCode::kSigns;
  for (const WireCode code : {WireCode::kFourBits, WireCode::kFiveBits, WireCode::kSixBits}) {
    if (most <= largest_code(code_bits(code))) return code;
  }
  return WireCode::kBytes;
}

void pack_votes(WireCode code, const std::int8_t* votes, std::int64_t n, std::byte* out) {
  auto* bytes = reinterpret_cast<std::uint8_t*>(out);
  if (code == WireCode::kTrits) return kernels().codecs.encode_trits(bytes, votes, n);
  if (const int bits = code_bits(code); bits > 0) {
    return kernels().codecs.pack_codes(bytes, votes, bits, largest_code(bits), n);
  }
  if (code == WireCode::kBytes) {
    std::copy_n(votes, n, reinterpret_cast<std::int8_t*>(out));
    return;
  }
  for_each_piece(n, [&](const Piece& piece) {
    std::array<std::uint8_t, kBlock> flags;
    for (std::int64_t i = 0; i < piece.n; ++i) {
      flags[static_cast<std::size_t>(i)] = votes[piece.first + i] > 0 ? 1 : 0;
    }
    pack_flags(flags.data(), piece.n, bytes + piece.first / 8);
  });
}

void unpack_votes(WireCode code, const std::byte* in, std::int64_t n, std::int8_t* votes) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(in);
  if (code == WireCode::kTrits) return kernels().codecs.decode_trits(votes, 0, bytes, 0, 1, n);
  if (const int bits = code_bits(code); bits > 0) {
    return kernels().codecs.unpack_codes(votes, bytes, bits, largest_code(bits), n);
  }
  if (code == WireCode::kBytes) {
    std::copy_n(reinterpret_cast<const std::int8_t*>(in), n, votes);
    return;
  }
  for_each_piece(n, [&](const Piece& piece) {
    std::array<std::uint8_t, kBlock> flags;
    unpack_flags(bytes + piece.first / 8, piece.n, flags.data());
    for (std::int64_t i = 0; i < piece.n; ++i) {
      votes[piece.first + i] = static_cast<std::int8_t>(2 * flags[static_cast<std::size_t>(i)] - 1);
    }
  });
}

void decompress(WireCode code, const std::byte* in, std::int64_t n, const std::uint8_t* used,
                float* out) {
  for_each_piece(n,
                 [&](const Piece& piece) { read_piece(code, in, piece, used, out + piece.first); });
}

void compress(WireCode code, float* x, std::int64_t n, const std::uint8_t* used, std::byte* out) {
  if (n == 0) return;
  const bool signs = code != WireCode::kInt8;
  if (signs) {
    const float scale = scale_of(code, x, n, used);
    std::memcpy(out, &scale, sizeof(scale));
  }
  for_each_piece(n, [&](const Piece& piece) {
    float* numbers = x + piece.first;
    if (signs) {
      write_signs(out, piece, numbers);
    } else {
      write_groups(out, piece, numbers);
    }
    std::array<float, kBlock> sent;
    read_piece(code, out, piece, used, sent.data());
    kernels().reductions.add_scaled(numbers, sent.data(), -1.0f, piece.n);
  });
}

}  // namespace tritgrad
