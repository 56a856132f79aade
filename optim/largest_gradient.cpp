#include "optim/largest_gradient.h"

#include <algorithm>
#include <array>

#include "engine/formats/format.h"
#include "engine/kernels/reductions.h"
#include "engine/lazy_gradient.h"
#include "engine/memory/parallel.h"

namespace tritgrad {
namespace {

using Tile = std::array<float, LazyGradient::kRows * kBlock>;

// Of rows [begin, end), at most LazyGradient::kRows, and the columns from `col` on.
float largest_of_tile(const Parameter& parameter, std::int64_t begin, std::int64_t end,
                      std::int64_t col) {
  alignas(kAlignment) Tile tile;
  const std::int64_t cols = parameter.shape().cols();
  const std::int64_t n = std::min(kBlock, cols - col);
  const ReductionKernels& reductions = kernels().reductions;
  if (const LazyGradient* lazy = parameter.lazy_gradient) {
    lazy->read(lazy->context, begin, end, col, col + n, tile.data(), {});
    return reductions.max_abs(tile.data(), (end - begin) * n);
  }
  float largest = 0.0f;
  for (std::int64_t row = begin; row < end; ++row) {
    const float* grad = parameter.read_gradient(row * cols + col, n, tile.data());
    largest = std::max(largest, reductions.max_abs(grad, n));
  }
  return largest;
}

}  // namespace

float largest_gradient(const Parameter& parameter) {
  constexpr std::int64_t kRows = LazyGradient::kRows;
  const Shape& shape = parameter.shape();
  const std::int64_t part = (least_rows_per_slot(shape) + kRows - 1) / kRows * kRows;
  std::array<float, kSlots> largest{};
  parallel_ranges(shape.rows(), part, [&](std::int64_t first, std::int64_t last) {
    float& of_part = largest[static_cast<std::size_t>(first / part)];
    for (std::int64_t row = first; row < last; row += kRows) {
      for (std::int64_t col = 0; col < shape.cols(); col += kBlock) {
        of_part =
            std::max(of_part, largest_of_tile(parameter, row, std::min(last, row + kRows), col));
      }
    }
  });
  return *std::max_element(largest.begin(), largest.end());
}

}  // namespace tritgrad
