// Sums in double that have the same bits whatever the width of vectors (kSumLanes).
#pragma once

#include "engine/kernel_table.h"
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

 private:
  static constexpr std::int64_t kVectors = kElements / kWidth;

  F64 sums_[kVectors];
};

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
