// The noise that rounds updates to whole levels: for each weight a sequence that is spread evenly
// over time, instead of independent numbers.
//
// A weight moves by n_t = floor(d_t + u_t). With independent u_t the rounding errors n_t - d_t add
// up to a random walk. Here u_t = frac(start + t alpha), a Weyl sequence: of any few steps the u_t
// fall evenly into [0, 1), so that what is steady in d_t is rounded to within a few levels however
// long it lasts; where the sign of d_t is chance, the variance of the sum is about half. This needs
// no memory: u_t is a function of the step and of the weight.
//
// alpha belongs to a weight's place in its block. If all weights had the same one, those with
// near-by starts would be rounded up together, time and again, and their errors would add. The
// alphas are fractions of 2^16 whose continued fractions hold no number above 4. The N numbers from
// any step on then fill every interval [0, x) with N x of them but for 3 + 4.57 ln N (Kuipers,
// Niederreiter: Uniform Distribution of Sequences; 1974, chapter 2, theorem 3.4); of independent
// numbers the square root of N is to be expected. That such fractions exist is known for every
// power of two (Niederreiter: Dyadic fractions with small partial quotients; 1986).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/kernels/direction.h"
#include "engine/random.h"

namespace tritgrad {

// The noise of each place in a block, in units of 2^-16: start + step alpha.
struct UpdateNoiseTable {
  static constexpr std::size_t kPlaces = 320;

  std::array<std::uint16_t, kPlaces> start;
  std::array<std::uint16_t, kPlaces> alpha;  // odd: all 65536 values in as many steps
};

extern const UpdateNoiseTable kUpdateNoise;

// Returns what block number `block` of a parameter adds to all its places. Its factor is the golden
// ratio in units of 2^-32, which spreads consecutive blocks evenly. Only the low 32 bits of the
// seed and of the number count.
constexpr std::uint16_t update_noise_offset(const RandomKey& key, std::uint64_t block) {
  const std::uint32_t of_parameter =
      key.stream + static_cast<std::uint32_t>(key.seed) * 0x85EBCA6Bu;
  return static_cast<std::uint16_t>(
      (of_parameter + static_cast<std::uint32_t>(block) * 0x9E3779B1u) >> 16);
}

// Returns the noise in units of 2^-16; place < kPlaces.
std::uint16_t update_noise(const RandomKey& key, std::uint64_t block, std::size_t place);

// Returns the noise of all places less update_noise_offset(), which all blocks have in common, each
// as_fraction().
std::array<std::uint32_t, UpdateNoiseTable::kPlaces> update_noise_of_step(std::uint32_t step);

}  // namespace tritgrad
