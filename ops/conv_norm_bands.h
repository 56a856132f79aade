// What the forward and the backward pass of conv_norm() share: what one keeps for the other, and
// how both go over images, a band of lines after the other, which stays in the caches.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/kernels/layers.h"
#include "engine/memory/parallel.h"
#include "engine/memory/prefetch.h"
#include "ops/conv_norm.h"
#include "ops/norm_columns.h"
#include "ops/pool.h"
#include "ops/products/linear.h"

namespace tritgrad {

// Floats of a band of lines, a few of which stay in the caches.
inline constexpr std::int64_t kBandFloats = 8192;
inline constexpr std::int64_t kLevelBytes = sizeof(std::int16_t);

// What backward needs of forward. All arrays are in the tape's arena.
struct ConvNorm {
  LinearOperands w;
  std::int64_t size;  // of the window
  ImageVar x;
  BatchNormParameters p;
  bool pools;
  ImageLevels z;         // of sums times scales of images, without those of rows
  NormStatistics batch;  // mean of z; inverse_std is E / the standard deviation of E z
  float* factor;         // gain / the standard deviation of E z
  float* eps_share;      // eps / (variance + eps)
  std::int16_t* falls;   // -1 where a larger z gives a smaller norm, 0 elsewhere

  const ImageShape& image() const { return z.image; }
  std::int64_t channels() const { return z.image.channels; }
  ImageShape out() const { return pools ? pooled(z.image) : z.image; }
  // Lines and columns of z that the output does not depend on: pooling drops odd ones.
  std::int64_t dropped_lines() const { return pools ? z.image.height % 2 : 0; }
  std::int64_t dropped_columns() const { return pools ? z.image.width % 2 : 0; }
  NormColumns columns() const { return batch.from(0); }
  // Lines of the output in a band.
  std::int64_t band_lines() const {
    const std::int64_t floats = z.image.width * channels() * (pools ? 2 : 1);
    return std::max<std::int64_t>(1, kBandFloats / floats);
  }

  // Calls body(first, lines) for bands of the output's lines.
  template <typename Body>
  void for_each_band(const Body& body) const {
    for (std::int64_t first = 0; first < out().height; first += band_lines()) {
      body(first, std::min(band_lines(), out().height - first));
    }
  }
};

// What the passes over one image keep of a band.
struct BandScratch {
  std::int16_t* pooled;
  std::int16_t* winners;
  float* z;      // of the output's pixels
  float* u;      // the norm of them
  float* dy;     // the gradient of them
  float* all_z;  // of all pixels of the band
  float* all_dy;

  BandScratch(Tape& tape, const ConvNorm& c) {
    const std::int64_t line = c.image().width * c.channels();
    const std::int64_t n = c.band_lines() * line, all = (c.pools ? 2 : 1) * n + line;
    pooled = tape.allocate_scratch<std::int16_t>(n);
    winners = tape.allocate_scratch<std::int16_t>(n);
    z = tape.allocate_scratch<float>(n);
    u = tape.allocate_scratch<float>(n);
    dy = tape.allocate_scratch<float>(n);
    all_z = tape.allocate_scratch<float>(all);
    all_dy = tape.allocate_scratch<float>(all);
  }
};

// Calls body(image, scratch) for all images; every thread has scratch of its own.
template <typename Body>
void for_each_image(Tape& tape, const ConvNorm& c, const Body& body) {
  const std::int64_t shares = std::min<std::int64_t>(thread_count(), c.z.images);
  auto* scratch = tape.allocate_scratch<BandScratch>(shares);
  for (std::int64_t i = 0; i < shares; ++i) scratch[i] = BandScratch(tape, c);
  parallel_for(shares, [&](std::int64_t share) {
    const std::int64_t last = c.z.images * (share + 1) / shares;
    for (std::int64_t image = c.z.images * share / shares; image < last; ++image) {
      body(image, scratch[share]);
    }
  });
}

// Reads z of a band of the output, and asks for that of the next one: it comes from memory.
inline void read_band(const ConvNorm& c, std::int64_t image, std::int64_t first, std::int64_t lines,
                      const BandScratch& s) {
  const std::int64_t line_numbers = c.out().width * c.channels();
  const std::int64_t rows = c.pools ? 2 : 1;  // lines of z for one of the output
  for (std::int64_t i = 0; i < lines; ++i) {
    const std::int16_t* levels = c.z.line(image, rows * (first + i));
    prefetch(levels + lines * rows * c.image().width * c.channels(),
             rows * c.image().width * c.channels() * kLevelBytes);
    if (c.pools) {
      std::int16_t* pooled_line = s.pooled + i * line_numbers;
      kernels().layers.pool_levels(pooled_line, s.winners + i * line_numbers, levels,
                                   levels + c.image().width * c.channels(), c.falls, c.out().width,
                                   c.channels());
      levels = pooled_line;
    }
    kernels().layers.levels_to_float(s.z + i * line_numbers, levels, c.z.factors[image],
                                     line_numbers);
  }
}

// Reads z, and makes the norm of it.
inline void normalize_band(const ConvNorm& c, std::int64_t image, std::int64_t first,
                           std::int64_t lines, const BandScratch& s) {
  read_band(c, image, first, lines, s);
  kernels().layers.batch_norm(s.u, c.channels(), s.z, c.channels(), c.columns(),
                              lines * c.out().width, c.channels());
}

}  // namespace tritgrad
