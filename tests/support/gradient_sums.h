// A gradient read as the sums of its product.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/formats/format.h"
#include "engine/lazy_gradient.h"

namespace tritgrad {

// All of it, tile by tile; what read() gives, to the bit.
inline std::vector<float> gradient_from_sums(const LazyGradient& source, const Shape& shape) {
  std::vector<float> gradient(static_cast<std::size_t>(shape.size()));
  std::vector<std::int32_t> sums(LazyGradient::kRows * kBlock);
  for (std::int64_t top = 0; top < shape.rows(); top += LazyGradient::kRows) {
    const std::int64_t bottom = std::min(shape.rows(), top + LazyGradient::kRows);
    for (std::int64_t left = 0; left < shape.cols(); left += kBlock) {
      const std::int64_t n = std::min(kBlock, shape.cols() - left);
      const SumRows rows =
          source.read_sums(source.context, top, bottom, left, left + n, sums.data(), {});
      for (std::int64_t i = 0; i < (bottom - top) * n; ++i) {
        const std::int64_t r = i / n, c = i % n;
        const std::int32_t sum = sums[static_cast<std::size_t>(r * kBlock + c)];
        gradient[static_cast<std::size_t>((top + r) * shape.cols() + left + c)] =
            rows.factors[r] * static_cast<float>(sum - rows.corrections[r]);
      }
    }
  }
  return gradient;
}

inline bool same(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace tritgrad
