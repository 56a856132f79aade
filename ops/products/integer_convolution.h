// Convolutions in integers: forward and dx, both the products of windows of bordered images with
// panels of trits.
//
//     forward  x, each image by its own absmax / 127, with the trits of W
//     dx       dy E, each image by its own absmax / 127, with the trits mirrored in height and
//              width and transposed (E: the scales of W)
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

// Calls done(WindowSums) for all stretches of an image, panel by panel, from the top.
template <typename Done>
void convolve_image(const BorderedImages& x, const WindowPanels& w, std::int64_t image,
                    const std::int32_t* corrections, const Done& done) {
  alignas(kAlignment) std::array<std::int32_t, kStretch * kPanelColumns> sums;
  const PanelDepth depth(w.groups(), w.size, x.line_bytes(), w.panel_bytes());
  for (std::int64_t first = 0; first < w.outputs; first += kPanelColumns) {
    const std::int64_t n = std::min(kPanelColumns, w.outputs - first);
    for (std::int64_t line = 0; line < x.image.height; ++line) {
      for (std::int64_t column = 0; column < x.image.width; column += kStretch) {
        const std::int64_t pixels = std::min(kStretch, x.image.width - column);
        kernels().products.multiply_panel(sums.data(), kPanelColumns, x.window(image, line, column),
                                          w.channels, pixels, n, w.at(first, 0), depth,
                                          PanelRange::kTrits,
                                          /*add=*/false, {});
        done(WindowSums{image, line, column, pixels, first, n, sums.data(),
                        corrections + line * x.image.width + column});
      }
    }
  }
}

// Calls done(WindowSums) for all stretches of all images, each image on one thread.
template <typename Done>
void convolve_images(Tape& tape, const BorderedImages& x, const WindowPanels& w, const Done& done) {
  const std::int32_t* corrections = sum_windows(tape, x);
  const std::int64_t pixels = x.image.pixels();
  parallel_pieces(x.images, 1, pixels * w.outputs * w.size * w.depth(),
                  [&](std::int64_t image, std::int64_t) {
                    convolve_image(x, w, image, corrections + image * pixels, done);
                  });
}

}  // namespace tritgrad
