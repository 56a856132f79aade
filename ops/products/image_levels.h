// Images of 16-bit levels with a factor each: what convolutions in integers leave, forward and
// backward, of their sums of 32 bits.
//
// Forward, a sum of d products of a code and a trit is at most 127 d. So many of its last bits are
// rounded off that this fits 16 bits, 2^k >= 127 d / 32767: none of up to 258 products, and with 9
// c of them far less than the codes have been rounded by. Half a unit in each of d codes, two
// thirds of which count, has a standard deviation of sqrt(d / 18); 2^k, rounded up to a power of
// two, of at most 2 x 127 d / 32767 / sqrt(12). That is a fifth of it with 128 channels, and less
// than half with 512. Backward, see ops/products/fine_convolution.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/kernels/layers.h"
#include "engine/memory/prefetch.h"
#include "engine/tape.h"
#include "ops/products/integer_convolution.h"

namespace tritgrad {

struct ImageLevels {
  ImageShape image;
  std::int64_t images;
  std::int16_t* levels;  // [images][pixels][channels]
  float* factors;        // [images]; a number is that of its image times its level
  // [images][channels]: the levels are within them.
  std::int16_t* least;
  std::int16_t* most;

  std::int16_t* line(std::int64_t index, std::int64_t line, std::int64_t column = 0) const {
    return levels + ((index * image.height + line) * image.width + column) * image.channels;
  }
};

// Returns the bits to be rounded off of sums of `depth` products with a number of at most
// `largest`.
inline int shift_for(std::int64_t depth, std::int64_t largest = kLargestCode) {
  int shift = 0;
  while ((largest * depth + ((1 << shift) >> 1)) >> shift > 32767) ++shift;
  return shift;
}

// Starts the ranges of an image.
inline void start_range(const ImageLevels& z, std::int64_t index) {
  std::fill_n(z.least + index * z.image.channels, z.image.channels, std::int16_t{32767});
  std::fill_n(z.most + index * z.image.channels, z.image.channels, std::int16_t{-32768});
}

// Makes the levels of a stretch of sums, and asks for the memory of those below, which are next.
inline void narrow_stretch(const ImageLevels& z, const WindowSums& s, int shift) {
  std::int16_t* levels = z.line(s.image, s.line, s.column) + s.first;
  const std::int64_t channels = z.image.channels, at = s.image * channels + s.first;
  kernels().layers.narrow_sums(levels, channels, s.sums, kPanelColumns, s.corrections, shift,
                               s.pixels, s.n);
  kernels().layers.widen_level_range(z.least + at, z.most + at, levels, channels, s.pixels, s.n);
  const std::int16_t* below = levels + z.image.width * channels;
  for (std::int64_t i = 0; i < s.pixels; ++i) {
    prefetch(below + i * channels, s.n * static_cast<std::int64_t>(sizeof(std::int16_t)));
  }
}

}  // namespace tritgrad
