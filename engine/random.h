// Counter-based random numbers: every number is a pure function of (seed, stream, step, index).
//
// There is no generator object and no hidden state, so any thread may draw any number in any order,
// a resumed run draws what the uninterrupted one would have drawn, and two subjects (shuffling,
// stochastic rounding of one parameter, dropout) never disturb each other because their streams
// differ.
//
// The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as
// 1, 2, 3; SC 2011); its published known answers are checked in tests/engine/test_random.cpp.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace tritgrad {

struct RandomKey {
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;
  std::uint32_t step = 0;
};

// Returns a stream number from the name of what draws from it (FNV-1a, 32 bits).
constexpr std::uint32_t random_stream(std::string_view name) {
  std::uint32_t hash = 2166136261u;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

using PhiloxBlock = std::array<std::uint32_t, 4>;

// In variables of their own: where nothing is optimised, the elements of arrays are calls.
constexpr PhiloxBlock philox4x32(const PhiloxBlock& counter,
                                 const std::array<std::uint32_t, 2>& key) {
  std::uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  std::uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

// Returns the 128 random bits number `block` of a key.
constexpr PhiloxBlock random_block(const RandomKey& key, std::uint64_t block) {
  return philox4x32(
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), key.stream,
       key.step},
      {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)});
}

constexpr std::uint32_t random_bits(const RandomKey& key, std::uint64_t index) {
  return random_block(key, index / 4)[index % 4];
}

// Returns element `index` of the 16-bit stream, eight to a block (low half of a word first): the
// noise of stochastic rounding. Kernels draw the same numbers many at a time
// (CodecKernels::random_u16).
constexpr std::uint16_t random_u16(const RandomKey& key, std::uint64_t index) {
  const std::uint32_t word = random_block(key, index / 8)[index % 8 / 2];
  return static_cast<std::uint16_t>(index % 2 == 0 ? word : word >> 16);
}

// Draws a number that is uniform on [0, 1), of 24 bits.
constexpr float random_uniform(const RandomKey& key, std::uint64_t index) {
  return static_cast<float>(random_bits(key, index) >> 8) * 0x1p-24f;
}

// Draws a standard normal number (Box-Muller on two words of one block).
inline float random_normal(const RandomKey& key, std::uint64_t index) {
  const PhiloxBlock bits = random_block(key, index);
  const double u = (bits[0] + 0.5) * 0x1p-32;
  const double angle = bits[1] * 0x1p-32 * 2.0 * std::numbers::pi;
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(angle));
}

// Draws a uniform integer in [0, bound); bias below bound / 2^32.
constexpr std::uint32_t random_below(const RandomKey& key, std::uint64_t index,
                                     std::uint32_t bound) {
  return static_cast<std::uint32_t>((std::uint64_t{random_bits(key, index)} * bound) >> 32);
}

}  // namespace tritgrad
