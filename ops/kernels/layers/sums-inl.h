// Sums in double that have the same bits whatever the width of vectors: of an array in kSumLanes
// lanes, and down columns, whose vectors stay in registers while the rows go by. And exact sums of
// whole numbers.
#pragma once

#include "engine/kernels/reductions.h"
#include "ops/kernels/layers/layer_loops-inl.h"
#include "ops/kernels/layers/norm_loops-inl.h"
#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

class LaneSums {
 public:
  LaneSums() {
    for (F64& sum : sums_) sum = F64(0.0);
  }

  static constexpr std::int64_t kElements = kSumLanes;
  static constexpr std::int64_t kWidth = kLanes<F64>;

  // Adds kElements elements: values(part) are kWidth of them, from part * kWidth on.
  template <typename Values>
  void add(const Values& values) {
    for (std::int64_t part = 0; part < kVectors; ++part) sums_[part] += values(part);
  }
  // The squares of kElements floats, which are exact and so may be fused with their addition.
  void add_squares(const float* x) {
    for (std::int64_t part = 0; part < kVectors; ++part) {
      const F64 value = read_f64(x + part * kWidth);
      sums_[part] = multiply_add(value, value, sums_[part]);
    }
  }
  // Returns the sum with the rest, fewer than kElements: rest(lane) for each.
  template <typename Rest>
  double total(std::int64_t n, const Rest& rest) {
    double lanes[kElements];
    if (n > 0) {
      for (std::int64_t part = 0; part < kVectors; ++part)
        write(lanes + part * kWidth, sums_[part]);
      for (std::int64_t lane = 0; lane < n; ++lane) lanes[lane] += rest(lane);
      for (std::int64_t part = 0; part < kVectors; ++part) {
        sums_[part] = read<F64>(lanes + part * kWidth);
      }
    }
    for (std::int64_t half = kVectors / 2; half > 0; half /= 2) {
      for (std::int64_t part = 0; part < half; ++part) sums_[part] += sums_[part + half];
    }
    write(lanes, sums_[0]);
    for (std::int64_t half = kWidth / 2; half > 0; half /= 2) {
      for (std::int64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    }
    return lanes[0];
  }

  // Returns the sum with the squares of n more floats.
  double total_of_squares(const float* x, std::int64_t n) {
    for (; n >= kElements; n -= kElements, x += kElements) add_squares(x);
    return total(n, [=](std::int64_t lane) { return double{x[lane]} * double{x[lane]}; });
  }

 private:
  static constexpr std::int64_t kVectors = kElements / kWidth;

  F64 sums_[kVectors];
};

// The sum of term(x[i]); add(sums, x) adds those of LaneSums::kElements numbers.
template <typename Add, typename Term>
double sum_in_lanes(const float* x, std::int64_t n, const Add& add, const Term& term) {
  LaneSums sums;
  std::int64_t i = 0;
  for (; i + LaneSums::kElements <= n; i += LaneSums::kElements) {
    read_ahead(x + i, LaneSums::kElements);
    add(sums, x + i);
  }
  return sums.total(n - i, [=](std::int64_t lane) { return term(double{x[i + lane]}); });
}
template <typename Term>
double sum_in_lanes(const float* x, std::int64_t n, const Term& term) {
  const auto add = [&](LaneSums& sums, const float* at) {
    sums.add([=](std::int64_t part) { return term(read_f64(at + part * LaneSums::kWidth)); });
  };
  return sum_in_lanes(x, n, add, term);
}

inline F64 magnitude_of(const F64& x) { return abs(x); }
inline double magnitude_of(double x) { return __builtin_fabs(x); }

double sum(const float* x, std::int64_t n) {
  return sum_in_lanes(x, n, [](const auto& value) { return value; });
}

double sum_of_magnitudes(const float* x, std::int64_t n) {
  return sum_in_lanes(x, n, [](const auto& value) { return magnitude_of(value); });
}

double sum_of_squares(const float* x, std::int64_t n) {
  return sum_in_lanes(
      x, n, [](LaneSums& sums, const float* at) { sums.add_squares(at); },
      [](double value) { return value * value; });
}

// The sum of squares of whole numbers, exactly while it is below 2^63.
class WholeSquares {
 public:
  void add(const I32& numbers) {
    even_ = even_ + square_even_lanes(numbers);
    odd_ = odd_ + square_even_lanes(odd_to_even_lanes(numbers));
  }
  // Returns the sum with the squares of n more numbers.
  std::int64_t total(const std::int32_t* sums, std::int32_t correction_, std::int64_t n) {
    const I32 correction(correction_);
    for (; n >= kLanes<I32>; n -= kLanes<I32>, sums += kLanes<I32>) {
      add(read<I32>(sums) - correction);
    }
    if (n > 0) add(read_first(sums, n, correction) - correction);
    return sum_lanes(U64(even_ + odd_));
  }

 private:
  I64 even_ = I64(0), odd_ = I64(0);
};

std::int64_t sum_of_squared_sums(const std::int32_t* sums, std::int32_t correction,
                                 std::int64_t n) {
  return WholeSquares().total(sums, correction, n);
}

double sum_of_squares_around(const float* x, double mean, std::int64_t n) {
  return sum_in_lanes(x, n, [mean](const auto& value) {
    const auto centered = value - mean;
    return centered * centered;
  });
}

}  // namespace

namespace wide {
namespace {

constexpr std::int64_t kDoubles = kLanes<F64>;

// sums[i] += term(row, i), for one vector of columns from i on, row after row; four vectors at a
// time, as an addition takes four cycles. Returns where the rest begins.
template <typename Term>
inline std::int64_t add_down(double* sums, std::int64_t rows, std::int64_t n, const Term& term) {
  std::int64_t i = 0;
  for (; i + 4 * kDoubles <= n; i += 4 * kDoubles) {
    F64 a = read<F64>(sums + i), b = read<F64>(sums + i + kDoubles);
    F64 c = read<F64>(sums + i + 2 * kDoubles), d = read<F64>(sums + i + 3 * kDoubles);
    for (std::int64_t r = 0; r < rows; ++r) {
      a = a + term(r, i);
      b = b + term(r, i + kDoubles);
      c = c + term(r, i + 2 * kDoubles);
      d = d + term(r, i + 3 * kDoubles);
    }
    write(sums + i, a);
    write(sums + i + kDoubles, b);
    write(sums + i + 2 * kDoubles, c);
    write(sums + i + 3 * kDoubles, d);
  }
  return i;
}

void add_to_sums(double* sums, const float* x, std::int64_t ld, std::int64_t rows, std::int64_t n) {
  const std::int64_t i = add_down(
      sums, rows, n, [=](std::int64_t r, std::int64_t at) { return read_f64(x + r * ld + at); });
  TRITGRAD_TARGET::add_to_sums(sums + i, x + i, ld, rows, n - i);
}

void add_squares_around(double* sums, const float* x, std::int64_t ld, const double* means,
                        std::int64_t rows, std::int64_t n) {
  const std::int64_t i = add_down(sums, rows, n, [=](std::int64_t r, std::int64_t at) {
    const F64 centered = read_f64(x + r * ld + at) - read<F64>(means + at);
    return centered * centered;
  });
  TRITGRAD_TARGET::add_squares_around(sums + i, x + i, ld, means + i, rows, n - i);
}

void add_products(double* sums, const float* a, const float* b, std::int64_t ld, std::int64_t rows,
                  std::int64_t n) {
  const std::int64_t i = add_down(sums, rows, n, [=](std::int64_t r, std::int64_t at) {
    return read_f64(a + r * ld + at) * read_f64(b + r * ld + at);
  });
  TRITGRAD_TARGET::add_products(sums + i, a + i, b + i, ld, rows, n - i);
}

// Takes one vector of floats, and two of doubles for each of the sums.
template <bool kRectify>
inline void add_batch_norm_vector(double* sum_dy, double* sum_dy_z, float* dy, const float* x,
                                  std::int64_t ld, const NormColumns& columns, std::int64_t rows) {
  const F32 mean = read<F32>(columns.mean), inverse_std = read<F32>(columns.inverse_std);
  const F32 gain = read<F32>(columns.gain), bias = read<F32>(columns.bias), zero(0.0f);
  F64 low = read<F64>(sum_dy), high = read<F64>(sum_dy + kDoubles);
  F64 low_z = read<F64>(sum_dy_z), high_z = read<F64>(sum_dy_z + kDoubles);
  for (std::int64_t r = 0; r < rows; ++r, dy += ld, x += ld) {
    const F32 z = (read<F32>(x) - mean) * inverse_std;
    F32 gradient = read<F32>(dy);
    if (kRectify) {
      gradient = gradient * one_if<float>(z * gain + bias > zero);
      write(dy, gradient);
    }
    const F64 g_low = low_half(gradient), g_high = high_half(gradient);
    low = low + g_low;
    high = high + g_high;
    low_z = low_z + g_low * low_half(z);
    high_z = high_z + g_high * high_half(z);
  }
  write(sum_dy, low);
  write(sum_dy + kDoubles, high);
  write(sum_dy_z, low_z);
  write(sum_dy_z + kDoubles, high_z);
}

void add_batch_norm_sums(double* sum_dy, double* sum_dy_z, float* dy, const float* x,
                         std::int64_t ld, const NormColumns& columns, std::int64_t rows,
                         std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kLanes<F32> <= n; i += kLanes<F32>) {
    const auto add = columns.rectify ? add_batch_norm_vector<true> : add_batch_norm_vector<false>;
    add(sum_dy + i, sum_dy_z + i, dy + i, x + i, ld, columns.from(i), rows);
  }
  TRITGRAD_TARGET::add_batch_norm_sums(sum_dy + i, sum_dy_z + i, dy + i, x + i, ld, columns.from(i),
                                       rows, n - i);
}

}  // namespace
}  // namespace wide
}  // namespace tritgrad::TRITGRAD_TARGET
