// Patches of images (im2col), and their way back (col2im).
//
// The patch of a pixel is the window of size x size pixels around it, in the image's own order
// (height x width x channels), with zeros for what lies outside. Patches are rows, one for each
// pixel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "engine/dataset.h"
#include "engine/kernel_table.h"

namespace tritgrad {

struct Patches {
  ImageShape image;
  std::int64_t size;  // of the window; odd

  std::int64_t pixels() const { return image.height * image.width; }
  std::int64_t cols() const { return size * size * image.channels; }

  // Pixels of one line of the image that the window of pixel x covers: [first, last). `skipped` are
  // those of the window that lie to the left of the image.
  struct Run {
    std::int64_t first, last, skipped;
  };
  Run run(std::int64_t x) const {
    const std::int64_t half = size / 2;
    const std::int64_t first = std::max<std::int64_t>(0, x - half);
    return {first, std::min(image.width, x + half + 1), first - x + half};
  }
};

// Copies what is mostly a few dozen bytes, for which a call of memcpy takes longer than the copy.
template <typename T>
void copy_short(const T* from, T* to, std::int64_t n) {
  constexpr std::int64_t kChunk = 16 / sizeof(T);
  std::int64_t i = 0;
  for (; i + kChunk <= n; i += kChunk) std::memcpy(to + i, from + i, 16);
  for (; i < n; ++i) to[i] = from[i];
}

// Fills the patches of the pixels of one line. `image` and `patches` begin with those of pixel 0;
// rows of patches are `ld` long, and what lies behind cols() becomes 0.
template <typename T>
void unfold_line(const Patches& p, std::int64_t line, const T* image, T* patches, std::int64_t ld) {
  const std::int64_t c = p.image.channels;
  const std::int64_t window = p.size * c;  // numbers of a line of it
  T* const out = patches + line * p.image.width * ld;
  for (std::int64_t i = 0; i < p.size; ++i) {
    const std::int64_t source = line + i - p.size / 2;
    const bool inside = source >= 0 && source < p.image.height;
    for (std::int64_t x = 0; x < p.image.width; ++x) {
      T* to = out + x * ld + i * window;
      const auto [first, last, skipped] = p.run(x);
      if (!inside || last - first != p.size) std::fill_n(to, window, T{});
      if (inside) {
        copy_short(image + (source * p.image.width + first) * c, to + skipped * c,
                   (last - first) * c);
      }
    }
  }
  if (ld == p.cols()) return;
  for (std::int64_t x = 0; x < p.image.width; ++x) {
    std::fill_n(out + x * ld + p.cols(), ld - p.cols(), T{});
  }
}

// Adds to one line of `image` all that lies over it in `patches`, in a fixed order. Lines may be
// folded at the same time.
inline void fold_line(const Patches& p, std::int64_t line, const float* patches, float* image) {
  const std::int64_t c = p.image.channels;
  for (std::int64_t i = 0; i < p.size; ++i) {
    const std::int64_t center = line + p.size / 2 - i;  // the line is the i-th of its windows
    if (center < 0 || center >= p.image.height) continue;
    for (std::int64_t x = 0; x < p.image.width; ++x) {
      const auto [first, last, skipped] = p.run(x);
      const float* patch = patches + (center * p.image.width + x) * p.cols();
      kernels().add_scaled(image + (line * p.image.width + first) * c,
                           patch + (i * p.size + skipped) * c, 1.0f, (last - first) * c);
    }
  }
}

}  // namespace tritgrad
