// A matrix of floats in strips of 64 columns.
//
// In a row-major matrix whose rows are a power of two apart, the numbers of a column share the few
// places that the caches have for each of them; a strip lies in one piece, and what goes down its
// columns some times finds it in the cache. It is what a panel of a product makes.
#pragma once

#include <cstdint>

#include "engine/kernels/products.h"
#include "engine/memory/prefetch.h"
#include "engine/tape.h"

namespace tritgrad {

inline constexpr std::int64_t kStripColumns = kPanelColumns;

// Strip s holds columns [64 s, 64 s + 64) of all rows, 64 apart; those that are not there are
// undefined.
struct Strips {
  std::int64_t rows, cols;
  float* data;

  std::int64_t count() const { return (cols + kStripColumns - 1) / kStripColumns; }
  // A cache line more than there are numbers, so that neighbours of a row do not lie a power of two
  // apart either.
  std::int64_t size_of_one() const {
    return rows * kStripColumns + kCacheLine / static_cast<std::int64_t>(sizeof(float));
  }
  // Row `row` of the strip that begins with column `first`, a multiple of 64.
  float* at(std::int64_t first, std::int64_t row) const {
    return data + first / kStripColumns * size_of_one() + row * kStripColumns;
  }
  // The shape of the memory of all of them.
  Shape shape() const { return {count(), size_of_one()}; }
};

// Takes memory for strips in the tape's arena.
inline Strips allocate_strips(Tape& tape, std::int64_t rows, std::int64_t cols) {
  Strips strips{rows, cols, nullptr};
  strips.data = tape.tensor(strips.shape()).data;
  return strips;
}

}  // namespace tritgrad
