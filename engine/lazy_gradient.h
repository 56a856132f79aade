// A gradient that is computed where and when it is read, so that it never lies in memory.
#pragma once

#include <cstdint>

#include "engine/memory/prefetch.h"

namespace tritgrad {

// The numbers that the sums of row r need, in a gradient that is factors[r] * (sums[r][c] -
// corrections[r]).
struct SumRows {
  const std::int32_t* corrections;
  const float* factors;
};

// The gradient of a matrix parameter. It must outlive the parameter's turn in Tape::backward.
struct LazyGradient {
  // Writes rows [row_begin, row_end), columns [col_begin, col_end) to out, densely. Thread-safe. It
  // is cheapest for kRows rows or a multiple at once, and for columns that begin at a multiple of
  // kBlock. `ahead` is the memory that the caller reads next.
  void (*read)(const void* context, std::int64_t row_begin, std::int64_t row_end,
               std::int64_t col_begin, std::int64_t col_end, float* out, const PrefetchList& ahead);
  const void* context;
  bool finite;  // whether all elements are
  // Writes them as sums of an integer product, rows kBlock apart, for at most kRows rows and kBlock
  // columns; null if the gradient is no such product.
  SumRows (*read_sums)(const void* context, std::int64_t row_begin, std::int64_t row_end,
                       std::int64_t col_begin, std::int64_t col_end, std::int32_t* sums,
                       const PrefetchList& ahead) = nullptr;

  static constexpr std::int64_t kRows = 16;
};

}  // namespace tritgrad
