// Sums in double that have the same bits whatever the width of vectors (kSumLanes), and exact ones.
#pragma once

#include "engine/kernels/kernel_table.h"
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

  // Those of kElements elements: values(part) are kWidth of them, from part * kWidth on.
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
  // With the rest, fewer than kElements: rest(lane) for each.
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

  // With the squares of n more floats.
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
  // With those of n more numbers.
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
}  // namespace tritgrad::TRITGRAD_TARGET
