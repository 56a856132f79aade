// A direction as whole levels of a fixed-point format, a vector at a time (LevelRounding of
// engine/kernels/direction.h).
#pragma once

#include <algorithm>

#include "engine/formats/format.h"
#include "engine/kernels/updates.h"
#include "ops/kernels/layers/sums-inl.h"
#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// The kinds of Direction, a vector of kLanes<F32> from element i on. Of those that are small, every
// number times the factor and the scale is far within an int32, and none is NaN: otherwise they may
// become any levels.
template <bool kIsSmall = false>
struct FloatDirection {
  static constexpr bool kSmall = kIsSmall;
  explicit FloatDirection(const Direction& direction)
      : numbers(direction.floats), factor(direction.factor) {}
  // The factor of all numbers, as times() wants it.
  static float scale_from(float scale) { return scale; }
  F32 times(const F32& scale, std::int64_t i) const { return scale * at(i); }
  F32 first_times(const F32& scale, std::int64_t i, std::int64_t count) const {
    return scale * first(i, count);
  }
  F32 at(std::int64_t i) const { return read<F32>(numbers + i); }
  // Returns the first `count` numbers from i on, perhaps none, and others that move nothing.
  F32 first(std::int64_t i, std::int64_t count) const {
    return count > 0 ? read_first(numbers + i, count, F32(0.0f)) : F32(0.0f);
  }
  // In vain, but cheap, where they do not lie in memory row after row.
  [[gnu::always_inline]] void prefetch_more(std::int64_t i, std::int64_t n) const {
    read_ahead(numbers + i, n);
  }

  const float* numbers;
  float factor;
};
template <bool kIsSmall>
struct SumDirection {
  static constexpr bool kSmall = kIsSmall;
  explicit SumDirection(const Direction& direction)
      : numbers(direction.sums), factor(direction.factor), correction(direction.correction) {}
  static float scale_from(float scale) { return scale; }
  F32 times(const F32& scale, std::int64_t i) const { return scale * at(i); }
  F32 first_times(const F32& scale, std::int64_t i, std::int64_t count) const {
    return scale * first(i, count);
  }
  F32 at(std::int64_t i) const { return to_float(whole(i)); }
  F32 first(std::int64_t i, std::int64_t count) const { return to_float(first_whole(i, count)); }
  I32 whole(std::int64_t i) const { return read<I32>(numbers + i) - I32(correction); }
  I32 first_whole(std::int64_t i, std::int64_t count) const {
    return count > 0 ? read_first(numbers + i, count, I32(correction)) - I32(correction) : I32(0);
  }
  [[gnu::always_inline]] void prefetch_more(std::int64_t /*i*/, std::int64_t /*n*/) const {}

  const std::int32_t* numbers;
  float factor;
  std::int32_t correction;
};
// The signs of either.
template <typename Numbers>
struct SignDirection : Numbers {
  static constexpr bool kSmall = true;
  using Numbers::Numbers;
  // Numbers beyond all levels may be cut to small ones, and NaN moves nothing.
  static float scale_from(float scale) {
    constexpr float kMost = 1024.0f;
    return scale < -kMost ? -kMost : scale > kMost ? kMost : scale == scale ? scale : 0.0f;
  }
  F32 times(const F32& scale, std::int64_t i) const {
    return times_finite_sign(scale, Numbers::at(i));
  }
  F32 first_times(const F32& scale, std::int64_t i, std::int64_t count) const {
    return times_finite_sign(scale, Numbers::first(i, count));
  }
};

// Sums less their correction fit an int32; half of that leaves room for the noise.
inline bool are_small(const Direction& of_sums, const LevelRounding& rounding) {
  return __builtin_fabsf(rounding.scale * of_sums.factor) < 0.5f;
}

// Calls body(the direction as one of these).
template <typename Body>
[[gnu::always_inline]] inline auto with_direction(const Direction& direction,
                                                  const LevelRounding& rounding, const Body& body) {
  if (direction.floats != nullptr) {
    return direction.signs ? body(SignDirection<FloatDirection<>>(direction))
                           : body(FloatDirection<>(direction));
  }
  if (direction.signs) return body(SignDirection<SumDirection<false>>(direction));
  return are_small(direction, rounding) ? body(SumDirection<true>(direction))
                                        : body(SumDirection<false>(direction));
}

template <typename Source>
class Levels {
 public:
  Levels(const Source& direction, const LevelRounding& rounding)
      : direction_(direction),
        noise_(rounding.noise),
        offset_(static_cast<std::int32_t>(rounding.offset)),
        negative_scale_(Source::scale_from(-rounding.scale * direction.factor)),
        limit_(rounding.limit) {}

  I32 at(std::int64_t i) const { return clamp(rounded(i), I32(-limit_), I32(limit_)); }
  I16 words(std::int64_t i) const {
    const auto most = static_cast<std::int16_t>(limit_);
    return clamp(narrow(rounded(i), rounded(i + kStep)), I16(static_cast<std::int16_t>(-most)),
                 I16(most));
  }
  // Within +-127 where the limit is beyond that.
  [[gnu::always_inline]] I8 bytes(std::int64_t i) const {
    return limited(
        narrow(rounded(i), rounded(i + kStep), rounded(i + 2 * kStep), rounded(i + 3 * kStep)));
  }
  // Returns the levels of the first `count` numbers from i on, and others that move nothing.
  I8 first_bytes(std::int64_t i, std::int64_t count) const {
    I32 parts[4];
    for (I32& part : parts) {
      const std::int64_t here = std::clamp<std::int64_t>(count, 0, kStep);
      const bool reads_noise = noise_ != nullptr && here > 0;
      part = rounded(direction_.first_times(negative_scale_, i, here),
                     reads_noise ? read_first(bits_at(i), here, I32(0)) : I32(0));
      i += kStep;
      count -= kStep;
    }
    return limited(narrow(parts[0], parts[1], parts[2], parts[3]));
  }

 private:
  static constexpr std::int64_t kStep = kLanes<I32>;

  const std::int32_t* bits_at(std::int64_t i) const {
    return reinterpret_cast<const std::int32_t*>(noise_) + i;
  }
  [[gnu::always_inline]] I8 limited(const I8& levels) const {
    const auto most = static_cast<std::int8_t>(std::min(limit_, 127));
    return clamp(levels, I8(static_cast<std::int8_t>(-most)), I8(most));
  }
  [[gnu::always_inline]] I32 rounded(std::int64_t i) const {
    return rounded(direction_.times(negative_scale_, i),
                   noise_ == nullptr ? I32(0) : read<I32>(bits_at(i)));
  }
  // Not limited yet, but for what no integer could hold.
  [[gnu::always_inline]] I32 rounded(F32 exact, const I32& noise) const {
    if (noise_ != nullptr) exact = plus_fraction(exact, noise + offset_);
    if constexpr (Source::kSmall) {
      return noise_ == nullptr ? nearest_of_small(exact) : floor_of_small(exact);
    }
    // Numbers too small for an integer become the smallest one; NaN becomes 0.
    const F32 limited = min(F32(0x1p30f), exact);
    return noise_ == nullptr ? to_nearest_or_zero(limited) : floor_or_zero(limited);
  }

  Source direction_;
  const std::uint32_t* noise_;
  I32 offset_;
  F32 negative_scale_;
  int limit_;
};

// Levels of the whole vectors of bytes in [0, n), and of the rest with zeros after them, within
// +-127. before_each(i): ahead of each vector. Returns where the rest begins.
template <typename Source, typename BeforeEach>
[[gnu::always_inline]] inline std::int64_t write_byte_levels(std::int8_t* out, const Source& source,
                                                             const LevelRounding& rounding,
                                                             std::int64_t n,
                                                             const BeforeEach& before_each) {
  constexpr std::int64_t kStep = kLanes<I8>;
  const Levels levels(source, rounding);
  std::int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    source.prefetch_more(i, kStep);
    before_each(i);
    write(out + i, levels.bytes(i));
  }
  if (i < n) write(out + i, levels.first_bytes(i, n - i));
  return i;
}

// Sums of squares of a direction's n numbers (DirectionRows): those from i on that a vector of
// bytes has levels of, and in the end the rest.
class FloatSquares {
 public:
  explicit FloatSquares(const Direction& direction) : numbers_(direction.floats) {}

  void add(std::int64_t i) {
    static_assert(kLanes<I8> % LaneSums::kElements == 0);
    for (std::int64_t part = 0; part < kLanes<I8>; part += LaneSums::kElements) {
      sums_.add_squares(numbers_ + i + part);
    }
  }
  double total(std::int64_t done, std::int64_t n) {
    return sums_.total_of_squares(numbers_ + done, n - done);
  }

 private:
  const float* numbers_;
  LaneSums sums_;
};
class SumSquares {
 public:
  explicit SumSquares(const Direction& direction) : numbers_(direction) {}

  void add(std::int64_t i) {
    for (std::int64_t part = 0; part < kLanes<I8>; part += kLanes<I32>) {
      squares_.add(numbers_.whole(i + part));
    }
  }
  double total(std::int64_t done, std::int64_t n) {
    return static_cast<double>(
        squares_.total(numbers_.numbers + done, numbers_.correction, n - done));
  }

 private:
  SumDirection<false> numbers_;
  WholeSquares squares_;
};

inline double sum_of_squares(const Direction& direction, std::int64_t n) {
  if (direction.floats != nullptr) return sum_of_squares(direction.floats, n);
  return static_cast<double>(sum_of_squared_sums(direction.sums, direction.correction, n));
}

// write_byte_levels() that returns the sum of squares, too.
template <typename Source, typename Squares>
[[gnu::always_inline]] inline double write_measured_levels(std::int8_t* out, const Source& source,
                                                           const LevelRounding& rounding,
                                                           std::int64_t n, Squares squares) {
  const std::int64_t done = write_byte_levels(
      out, source, rounding,
      n, [&](std::int64_t i) __attribute__((always_inline)) { squares.add(i); });
  return squares.total(done, n);
}
// Floats are taken to be small until the sum has said that they are not: then once more.
inline double write_float_levels(std::int8_t* out, const Direction& direction,
                                 const LevelRounding& rounding, std::int64_t n) {
  const FloatDirection<true> source(direction);
  const double squares = write_measured_levels(out, source, rounding, n, FloatSquares(direction));
  // No number is above the root of the sum: below 2^29, with room for the noise, and none is NaN.
  const double scale = source.scale_from(rounding.scale * direction.factor);
  if (!(scale * scale * squares < 0x1p58)) {
    write_byte_levels(out, FloatDirection<>(direction), rounding, n, [](std::int64_t) {});
  }
  return squares;
}
inline double write_sum_levels(std::int8_t* out, const Direction& direction,
                               const LevelRounding& rounding, std::int64_t n) {
  if (are_small(direction, rounding)) {
    return write_measured_levels(out, SumDirection<true>(direction), rounding, n,
                                 SumSquares(direction));
  }
  write_byte_levels(out, SumDirection<false>(direction), rounding, n, [](std::int64_t) {});
  return sum_of_squares(direction, n);
}

// Levels of columns [col, col + n) of row r, and the row's squares with the first ones.
void write_row_levels(std::int8_t* out, const DirectionRows& rows, std::int64_t r, std::int64_t col,
                      std::int64_t n) {
  const Direction direction = rows.directions[r].from(col);
  const LevelRounding rounding = rows.roundings[r].from(col);
  if (rows.squares != nullptr && n == rows.n && !direction.signs) {
    rows.squares[r] = direction.floats != nullptr ? write_float_levels(out, direction, rounding, n)
                                                  : write_sum_levels(out, direction, rounding, n);
    return;
  }
  if (rows.squares != nullptr && col == 0) rows.squares[r] = sum_of_squares(direction, rows.n);
  // Inlined: to hand a direction over in memory takes as long as a vector.
  with_direction(
      direction, rounding, [&](const auto& source) __attribute__((always_inline)) {
        write_byte_levels(out, source, rounding, n, [](std::int64_t) {});
      });
}

// Calls body(r, col, n, levels) for all rows, kBlock columns at most at a time. Levels are written
// first, as loops that make them and use them at once want more registers than there are; they are
// written for one row after the other, as memory would idle meanwhile.
template <typename Body>
void for_each_levels(const DirectionRows& rows, const Body& body) {
  alignas(kAlignment) std::int8_t levels[kBlock + kLanes<I8>];
  for (std::int64_t r = 0; r < rows.count; ++r) {
    std::int64_t col = 0;
    do {
      const std::int64_t n = std::min(kBlock, rows.n - col);
      write_row_levels(levels, rows, r, col, n);
      body(r, col, n, levels);
      col += n;
    } while (col < rows.n);
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
