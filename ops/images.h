// Images between layers, where a row of x is a pixel and its columns are the channels; patches of
// images (im2col), and their way back (col2im).
//
// The patch of a pixel is the window of size x size pixels around it, in the image's own order
// (height x width x channels), with zeros for what lies outside. Patches are rows, one for each
// pixel, or, with a stride, for each pixel whose line and column are multiples of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/check.h"
#include "engine/data/image_shape.h"
#include "engine/kernels/reductions.h"
#include "engine/tape.h"

namespace tritgrad {

// Returns the number of images in x. Throws Error, in the name of `op`, where there are none or
// half ones.
inline std::int64_t count_images(const char* op, const Var& x, const ImageShape& image) {
  check(
      image.size() > 0 && x.value.cols() == image.channels && x.value.rows() % image.pixels() == 0,
      op, ": x has shape ", x.shape().str(), ", which is no number of images of ", image.height,
      " x ", image.width, " pixels of ", image.channels, " channels");
  return x.value.rows() / image.pixels();
}

struct Patches {
  ImageShape image;
  std::int64_t size;  // of the window; odd
  std::int64_t stride = 1;

  std::int64_t height() const { return (image.height + stride - 1) / stride; }
  std::int64_t width() const { return (image.width + stride - 1) / stride; }
  // How many patches an image has.
  std::int64_t count() const { return height() * width(); }
  std::int64_t cols() const { return size * size * image.channels; }

  // Pixels of one line of the image that the window of patch x of a line covers: [first, last).
  // `skipped` are those of the window that lie to the left of the image.
  struct Run {
    std::int64_t first, last, skipped;
  };
  Run run(std::int64_t x) const {
    const std::int64_t half = size / 2, center = x * stride;
    const std::int64_t first = std::max<std::int64_t>(0, center - half);
    return {first, std::min(image.width, center + half + 1), first - center + half};
  }
};

// Copies what is mostly a few dozen bytes, for which a call of memcpy takes longer than the copy:
// in chunks, the last of which may overlap the one before.
template <typename T>
void copy_short(const T* from, T* to, std::int64_t n) {
  const auto* source = reinterpret_cast<const std::byte*>(from);
  auto* target = reinterpret_cast<std::byte*>(to);
  const auto bytes = n * static_cast<std::int64_t>(sizeof(T));
  const auto copy = [&]<int kChunk>(std::integral_constant<int, kChunk>) {
    for (std::int64_t i = 0; i < bytes - kChunk; i += kChunk) {
      std::memcpy(target + i, source + i, kChunk);
    }
    std::memcpy(target + bytes - kChunk, source + bytes - kChunk, kChunk);
  };
  if (bytes >= 16) return copy(std::integral_constant<int, 16>());
  if (bytes >= 8) return copy(std::integral_constant<int, 8>());
  if (bytes >= 4) return copy(std::integral_constant<int, 4>());
  for (std::int64_t i = 0; i < bytes; ++i) target[i] = source[i];
}

// Fills the patches of one line of them. `image` and `patches` begin with pixel 0 and its patch;
// rows of patches are `ld` long, and what lies behind cols() becomes 0.
template <typename T>
void unfold_line(const Patches& p, std::int64_t line, const T* image, T* patches, std::int64_t ld) {
  const std::int64_t c = p.image.channels;
  const std::int64_t window = p.size * c;  // numbers of a line of it
  const std::int64_t top = line * p.stride - p.size / 2;
  T* to = patches + line * p.width() * ld;
  for (std::int64_t x = 0; x < p.width(); ++x, to += ld) {
    const auto [first, last, skipped] = p.run(x);
    const bool whole = last - first == p.size;
    for (std::int64_t i = 0; i < p.size; ++i) {
      const bool inside = top + i >= 0 && top + i < p.image.height;
      if (!inside || !whole) std::fill_n(to + i * window, window, T{});
      if (!inside) continue;
      copy_short(image + ((top + i) * p.image.width + first) * c, to + i * window + skipped * c,
                 (last - first) * c);
    }
    for (std::int64_t i = p.cols(); i < ld; ++i) to[i] = T{};
  }
}

// Adds to one line of `image` all that lies over it in `patches`, in a fixed order. Lines may be
// folded at the same time.
inline void fold_line(const Patches& p, std::int64_t line, const float* patches, float* image) {
  const std::int64_t c = p.image.channels;
  for (std::int64_t i = 0; i < p.size; ++i) {
    const std::int64_t center = line + p.size / 2 - i;  // the line is the i-th of its windows
    if (center < 0 || center >= p.image.height || center % p.stride != 0) continue;
    for (std::int64_t x = 0; x < p.width(); ++x) {
      const auto [first, last, skipped] = p.run(x);
      const float* patch = patches + (center / p.stride * p.width() + x) * p.cols();
      kernels().reductions.add_scaled(image + (line * p.image.width + first) * c,
                                      patch + (i * p.size + skipped) * c, 1.0f, (last - first) * c);
    }
  }
}

}  // namespace tritgrad
