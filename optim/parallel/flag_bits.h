// Flags, a byte each, as bits, the lowest first: eight at a time, by one multiplication.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace tritgrad {

static_assert(std::endian::native == std::endian::little, "flag i is byte i of a word");

// flags [n], each 0 or 1 -> bits [(n + 7) / 8]; bits beyond n are 0.
inline void pack_flags(const std::uint8_t* flags, std::int64_t n, std::uint8_t* bits) {
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

// bits [(n + 7) / 8] -> flags [n], each 0 or 1.
inline void unpack_flags(const std::uint8_t* bits, std::int64_t n, std::uint8_t* flags) {
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

}  // namespace tritgrad
