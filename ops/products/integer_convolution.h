// Convolutions in integers: forward and dx, both the products of windows of bordered images with
// panels of trits.
//
//     forward  x, each image by its own absmax / 127, with the trits of W
//     dx       dy E in 16 bits (ops/products/fine_convolution.h), with the trits mirrored in
//              height and width and transposed (E: the scales of W)
//
// Of a line of pixels, every line of the windows is one product with a panel, whose rows begin a
// pixel apart and overlap. Sums are of 32 bits and exact, so the bits depend neither on the
// instruction set nor on the number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/kernels/products.h"
#include "ops/products/bordered_images.h"
#include "ops/products/linear.h"
#include "ops/products/quantized.h"

namespace tritgrad {

// The trits of a convolution, trit + 1, in panels of 64 outputs: one for each line of the window.
struct WindowPanels {
  std::int64_t size;      // of the window
  std::int64_t channels;  // of what is read
  std::int64_t outputs;
  std::uint8_t* bytes;

  std::int64_t depth() const { return size * channels; }  // of one panel
  std::int64_t groups() const { return (depth() + 3) / 4; }
  std::int64_t panel_bytes() const { return groups() * 4 * kPanelColumns; }
  std::uint8_t* at(std::int64_t first_output, std::int64_t line) const {
    return bytes + (first_output / kPanelColumns * size + line) * panel_bytes();
  }
};

// Takes the trits of W [outputs, size size channels] for forward, in scratch.
WindowPanels pack_windows(Tape& tape, const LinearOperands& w, std::int64_t size);
// Takes them mirrored and transposed for dx: what it reads are the outputs of W.
WindowPanels pack_mirrored_windows(Tape& tape, const LinearOperands& w, std::int64_t size);

// Sums of a stretch of pixels of one line, of outputs [first, first + n).
struct WindowSums {
  std::int64_t image, line, column, pixels;
  std::int64_t first, n;
  const std::int32_t* sums;         // of codes times (trit + 1), pixels kPanelColumns apart
  const std::int32_t* corrections;  // of each pixel: what the ones have added
};

// Pixels of a line whose sums stay in the first cache.
inline constexpr std::int64_t kStretch = 64;

// Sets the sums of a stretch to those of x's codes, or adds them.
inline void multiply_stretch(const BorderedImages& x, const WindowPanels& w, const WindowSums& s,
                             std::int32_t* sums, bool add) {
  const PanelDepth depth(w.groups(), w.size, x.line_bytes(), w.panel_bytes());
  kernels().products.multiply_panel(sums, kPanelColumns, x.window(s.image, s.line, s.column),
                                    w.channels, s.pixels, s.n, w.at(s.first, 0), depth,
                                    PanelRange::kTrits, add, {});
}

// Calls body(WindowSums without sums) for all stretches of an image, panel by panel, from the top.
template <typename Body>
void for_each_stretch(const ImageShape& image, const WindowPanels& w, std::int64_t index,
                      const std::int32_t* corrections, const Body& body) {
  for (std::int64_t first = 0; first < w.outputs; first += kPanelColumns) {
    const std::int64_t n = std::min(kPanelColumns, w.outputs - first);
    for (std::int64_t line = 0; line < image.height; ++line) {
      for (std::int64_t column = 0; column < image.width; column += kStretch) {
        body(WindowSums{index, line, column, std::min(kStretch, image.width - column), first, n,
                        nullptr,
                        corrections + (index * image.height + line) * image.width + column});
      }
    }
  }
}

// Calls done(WindowSums) for all stretches of all images, each image on one thread.
template <typename Done>
void convolve_images(Tape& tape, const BorderedImages& x, const WindowPanels& w, const Done& done) {
  const std::int32_t* corrections = sum_windows(tape, x);
  parallel_pieces(x.images, 1, x.image.pixels() * w.outputs * w.size * w.depth(),
                  [&](std::int64_t index, std::int64_t) {
                    alignas(kAlignment) std::array<std::int32_t, kStretch * kPanelColumns> sums;
                    for_each_stretch(x.image, w, index, corrections, [&](WindowSums s) {
                      multiply_stretch(x, w, s, sums.data(), /*add=*/false);
                      s.sums = sums.data();
                      done(s);
                    });
                  });
}

}  // namespace tritgrad
