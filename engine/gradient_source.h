// A gradient that is computed where and when it is read, so that it never lies in memory.
#pragma once

#include <cstdint>

#include "engine/memory/memory_ahead.h"

namespace tritgrad {

// Of a gradient that is factors[r] * (sums[r][c] - corrections[r]): what row r's sums need.
struct SumRows {
  const std::int32_t* corrections;
  const float* factors;
};

// The gradient of a matrix parameter. It must outlive the parameter's turn in Tape::backward.
struct GradientSource {
  // Rows [row_begin, row_end), columns [col_begin, col_end) to out, densely. Thread-safe. Cheapest
  // for kRows rows or a multiple at once, and columns that begin at a multiple of kBlock. `ahead`:
  // what the caller reads next.
  void (*read)(const void* context, std::int64_t row_begin, std::int64_t row_end,
               std::int64_t col_begin, std::int64_t col_end, float* out, const MemoryAhead& ahead);
  const void* context;
  bool finite;  // whether all elements are
  // The same as sums of an integer product, rows kBlock apart, for at most kRows rows and kBlock
  // columns; null if the gradient is no such product.
  SumRows (*read_sums)(const void* context, std::int64_t row_begin, std::int64_t row_end,
                       std::int64_t col_begin, std::int64_t col_end, std::int32_t* sums,
                       const MemoryAhead& ahead) = nullptr;

  static constexpr std::int64_t kRows = 16;
};

}  // namespace tritgrad
