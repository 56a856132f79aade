// Inputs on which kernels go wrong: awkward lengths, unaligned starts, corner values; and arrays
// that notice a store outside of them.
#pragma once

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "engine/kernels/codecs.h"
#include "engine/kernels/layers.h"
#include "engine/kernels/products.h"
#include "engine/kernels/reductions.h"
#include "engine/kernels/updates.h"
#include "engine/random.h"

namespace tritgrad {

// 64 is the widest vector in elements (bytes of AVX-512), and the bound of what a kernel may handle
// apart.
inline std::vector<std::int64_t> awkward_lengths() {
  std::vector<std::int64_t> lengths;
  for (std::int64_t n = 0; n <= 2 * 64 + 1; ++n) lengths.push_back(n);
  for (std::int64_t n : {255, 256, 257, 319, 320, 321, 511, 1000, 1025}) lengths.push_back(n);
  return lengths;
}

// n elements starting `offset` elements after a 64-byte boundary, with a margin on both sides.
template <typename T>
class Guarded {
 public:
  static constexpr std::int64_t kMargin = 64;

  Guarded(std::int64_t n, std::int64_t offset)
      : offset_(offset),
        bytes_(static_cast<std::size_t>((n + 2 * kMargin + offset)) * sizeof(T) + 64) {
    std::memset(bytes_.data(), 0x5A, bytes_.size());
  }
  T* data() {
    const auto start = reinterpret_cast<std::uintptr_t>(bytes_.data());
    return reinterpret_cast<T*>((start + 63) / 64 * 64) + kMargin + offset_;
  }
  T& operator[](std::int64_t i) { return data()[i]; }

 private:
  std::int64_t offset_;
  std::vector<unsigned char> bytes_;
};

// Elements and margins agree bit for bit; a NaN of a `float` may carry another payload if
// `any_nan`.
template <typename T>
bool same_bits(Guarded<T>& x, Guarded<T>& y, std::int64_t n, bool any_nan = false) {
  for (std::int64_t i = -32; i < n + 32; ++i) {
    if (std::memcmp(&x[i], &y[i], sizeof(T)) == 0) continue;
    if constexpr (std::is_floating_point_v<T>) {
      if (any_nan && std::isnan(x[i]) && std::isnan(y[i])) continue;
    }
    return false;
  }
  return true;
}

// Every other value is a corner, the others are normal with magnitudes from 2^-20 to 2^19.
inline float awkward_float(std::int64_t i, std::uint32_t stream) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float tiny = std::numeric_limits<float>::denorm_min();
  static constexpr float kCorners[] = {
      0.0f,   -0.0f, tiny,    -tiny,   1e-39f,    -1e-39f,     0.5f,          -0.5f,
      1.5f,   -1.5f, 2.5f,    -2.5f,   126.5f,    127.f,       -127.f,        127.5f,
      -128.f, 255.f, -255.5f, 256.f,   1e38f,     -1e38f,      3.4e38f,       inf,
      -inf,   nan,   -nan,    65536.f, 8388608.f, 0.49999997f, 1.1754944e-38f};
  const RandomKey key{.seed = 7, .stream = stream, .step = 0};
  const auto index = static_cast<std::uint64_t>(i);
  if (random_bits(key, index) % 2 == 0) {
    return kCorners[random_bits(key, index + 1000003) % std::size(kCorners)];
  }
  const int exponent = static_cast<int>(random_bits(key, index + 2000003) % 40) - 20;
  return std::ldexp(random_normal(key, index), exponent);
}

inline constexpr RandomKey kKey{.seed = 0x123456789ABCDEFull, .stream = 77, .step = 5};

// Two arrays of the same awkward content: one for the reference, one for the table under test.
template <typename T>
struct Twins {
  Twins(std::int64_t n, std::int64_t offset) : expected(n, offset), actual(n, offset) {}
  template <typename Fill>
  Twins(std::int64_t n, std::int64_t offset, const Fill& fill) : Twins(n, offset) {
    for (std::int64_t i = 0; i < n; ++i) expected[i] = actual[i] = fill(i);
  }
  Guarded<T> expected, actual;
};

inline Guarded<float> floats(std::int64_t n, std::int64_t offset, std::uint32_t stream) {
  Guarded<float> values(n, offset);
  for (std::int64_t i = 0; i < n; ++i) values[i] = awkward_float(i, stream);
  return values;
}

inline Guarded<std::uint16_t> noise_bits(std::int64_t n, std::int64_t offset) {
  Guarded<std::uint16_t> noise(n, offset);
  for (std::int64_t i = 0; i < n; ++i) {
    noise[i] = i % 5 == 0   ? 0xFFFF
               : i % 7 == 0 ? 0
                            : random_u16(kKey, static_cast<std::uint64_t>(i));
  }
  return noise;
}

// Adds up the lanes of a sum in double, half by half.
inline double sum_of_lanes(std::array<double, kSumLanes> lanes) {
  for (std::size_t half = lanes.size() / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// Returns noise as kernels of updates want it (LevelRounding).
inline Guarded<std::uint32_t> noise_fractions(std::int64_t n, std::int64_t offset) {
  Guarded<std::uint16_t> bits = noise_bits(n, offset);
  Guarded<std::uint32_t> noise(n, offset);
  for (std::int64_t i = 0; i < n; ++i) noise[i] = as_fraction(bits[i]);
  return noise;
}

// Every table above the reference; where there is none, nothing is tested, which tools/test.sh
// tells.
inline std::span<const KernelTables* const> vector_kernels() {
  const auto tables = supported_kernels().subspan(1);
  if (tables.empty()) MESSAGE("skipped: kernels of vectors, there are none but the reference");
  return tables;
}

// Calls body(table, n, offset) for every table above the reference.
template <typename Body>
void for_each_case(const Body& body) {
  for (const KernelTables* table : vector_kernels()) {
    for (std::int64_t n : awkward_lengths()) {
      for (std::int64_t offset : {0, 1, 7}) body(*table, n, offset);
    }
  }
}

inline const KernelTables& reference_kernels() { return *supported_kernels().front(); }

}  // namespace tritgrad
