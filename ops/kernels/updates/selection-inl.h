// The largest magnitudes of a chunk (MicroAdam).
//
// If k of some groups have a member of at least this size, then so have k elements. So the k-th
// largest of the groups' maxima, which are few, is a bound below which nothing has to be looked at;
// with twice as many groups as elements wanted, and members spread by chance, about 1.4 k elements
// are left.
#pragma once

#include <algorithm>
#include <bit>

#include "engine/kernels/updates.h"
#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

constexpr std::int32_t kMagnitude = 0x7FFFFFFF;

inline I32 magnitudes_at(const float* x) { return bits_as<I32>(read<F32>(x)) & I32(kMagnitude); }
inline std::int32_t magnitude_of_bits(float x) {
  return std::bit_cast<std::int32_t>(x) & kMagnitude;
}

// A bit for each of the next magnitudes, as many as a vector has bytes, that is at least `least`.
inline std::uint64_t lanes_from(const float* x, std::int32_t least) {
  std::uint64_t lanes = 0;
  for (std::int64_t k = 0; k < 4; ++k) {
    lanes |= lanes_of(magnitudes_at(x + k * kLanes<I32>) >= I32(least)) << (k * kLanes<I32>);
  }
  return lanes;
}

// Counts the magnitudes that are at least `least`.
inline std::int64_t count_from(const float* x, std::int32_t least, std::int64_t n) {
  std::int64_t i = 0, count = 0;
  for (; i + kLanes<I8> <= n; i += kLanes<I8>) count += std::popcount(lanes_from(x + i, least));
  for (; i < n; ++i) count += magnitude_of_bits(x[i]) >= least;
  return count;
}

// Returns the bits, from the highest to `lowest`, of the k-th largest of n magnitudes. It has those
// that the smallest and the largest one have in common.
std::int32_t bits_of_kth(const float* x, std::int64_t n, std::int64_t k, std::int32_t lowest) {
  std::int32_t smallest = kMagnitude, largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    smallest = std::min(smallest, magnitude_of_bits(x[i]));
    largest = std::max(largest, magnitude_of_bits(x[i]));
  }
  const auto differing = static_cast<std::uint32_t>(smallest ^ largest);
  const std::uint32_t first = std::bit_floor(differing);
  std::int32_t least = largest & ~static_cast<std::int32_t>(2 * first - 1);
  if (first == 0) least = largest;
  for (auto bit = static_cast<std::int32_t>(first); bit >= lowest; bit >>= 1) {
    // No jump, which would be guessed wrong every other time.
    least |= count_from(x, least | bit, n) >= k ? bit : 0;
  }
  return least & ~(lowest - 1);
}

// The largest magnitude of elements i, i + groups, i + 2 groups and so on, for each i < groups.
void maxima_of_groups(float* maxima, const float* x, std::int64_t groups, std::int64_t n) {
  std::fill_n(maxima, groups, 0.0f);
  std::int64_t first = 0;
  for (; first + groups <= n; first += groups) {
    for (std::int64_t i = 0; i < groups; i += kLanes<I32>) {
      const I32 largest = bits_as<I32>(read<F32>(maxima + i));
      write(maxima + i, bits_as<F32>(max(magnitudes_at(x + first + i), largest)));
    }
  }
  for (std::int64_t i = first; i < n; ++i) {
    maxima[i - first] = std::max(maxima[i - first], __builtin_fabsf(x[i]));
  }
}

// Elements that may be among the largest.
struct Candidates {
  // Beyond the last one, what is written ahead of its being counted.
  static constexpr std::int64_t kRoom = kMostFeedback + 2;

  std::int64_t count = 0;
  std::uint16_t index[kRoom];
};

// Appends first + the place of each bit. Two are written whether they are there or not, as a jump
// for each would often be guessed wrong, and more are rare.
inline void append_places(Candidates& to, std::int64_t first, std::uint64_t bits) {
  const std::int64_t more = std::popcount(bits);
  for (std::int64_t j = 0; j < more || j < 2; ++j, bits &= bits - 1) {
    to.index[to.count + j] = static_cast<std::uint16_t>(first + std::countr_zero(bits));
  }
  to.count += more;
}

// Finds the magnitudes that are at least `least`, in rising order of their indices.
void find_from(Candidates& to, const float* x, std::int32_t least, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kLanes<I8> <= n; i += kLanes<I8>) append_places(to, i, lanes_from(x + i, least));
  for (; i < n; ++i) {
    to.index[to.count] = static_cast<std::uint16_t>(i);
    to.count += magnitude_of_bits(x[i]) >= least;
  }
}

// Returns a bound that k magnitudes reach at least. Bits below those of the exponent and five more
// would leave out few.
std::int32_t bound_of_largest(const float* x, std::int64_t k, std::int64_t n) {
  constexpr std::int64_t kLeastGroups = 128, kMostGroups = 1024;
  constexpr std::int32_t kLowest = 1 << 18;
  std::int64_t groups = kLeastGroups;
  while (groups < 2 * k && groups < kMostGroups) groups *= 2;
  if (k > groups || 2 * groups > n) return bits_of_kth(x, n, k, kLowest);
  float maxima[kMostGroups];
  maxima_of_groups(maxima, x, groups, n);
  return bits_of_kth(maxima, groups, k, kLowest);
}

void select_largest(std::uint16_t* index, const float* x, std::int64_t k, std::int64_t n) {
  Candidates found;
  find_from(found, x, bound_of_largest(x, k, n), n);
  float large[Candidates::kRoom];
  large[0] = 0.0f;  // at least k > 0 are found, which the compiler does not know
  for (std::int64_t j = 0; j < found.count; ++j) large[j] = x[found.index[j]];
  const std::int32_t least = bits_of_kth(large, found.count, k, 1);
  std::int64_t ties = k - count_from(large, least + 1, found.count), kept = 0;
  for (std::int64_t j = 0; j < found.count; ++j) {
    const std::int32_t bits = magnitude_of_bits(large[j]);
    // In place: never ahead of what is read.
    found.index[kept] = found.index[j];
    kept += static_cast<int>(bits > least) |
            (static_cast<int>(bits == least) & static_cast<int>(ties > 0));
    ties -= bits == least;
  }
  std::copy_n(found.index, k, index);
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
