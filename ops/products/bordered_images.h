// Images of int8 codes inside a border of zeros, as convolutions in integers read them.
//
// A line of a window is then one run of size x channels bytes, wherever the window lies, so that a
// convolution reads images where they are: windows of neighbouring pixels overlap, and nobody
// copies patches.
#pragma once

#include <cstdint>

#include "engine/data/image_shape.h"
#include "engine/tape.h"

namespace tritgrad {

struct BorderedImages {
  ImageShape image;  // without the border
  std::int64_t images;
  std::int64_t border;     // pixels on each side
  std::int8_t* codes;      // in +-127, from the first image's border on
  float* scales;           // [images]; a number is about that of its image times its code
  bool rectified = false;  // no code of a finite image is negative; otherwise some may be

  std::int64_t rows() const { return images * image.pixels(); }
  std::int64_t line_bytes() const { return (image.width + 2 * border) * image.channels; }
  std::int64_t image_bytes() const { return (image.height + 2 * border) * line_bytes(); }
  // Returns line `line` of the border and the image, both counted, from pixel `column` on: for
  // windows of 2 border + 1 pixels that is the first line of the window of pixel (line, column).
  std::int8_t* window(std::int64_t index, std::int64_t line, std::int64_t column) const {
    return codes + index * image_bytes() + line * line_bytes() + column * image.channels;
  }
  // Returns the codes of a line of the image itself.
  std::int8_t* line(std::int64_t index, std::int64_t line) const {
    return window(index, line + border, border);
  }
};

// Takes memory in the tape's arena, until the tape is reset, or in its scratch, and makes the
// border. Behind the last image so many bytes may be read, whatever they are.
inline constexpr std::int64_t kBytesBehindImages = 64;
BorderedImages allocate_images(Tape& tape, const ImageShape& image, std::int64_t images,
                               std::int64_t border, bool keep);

// Fills `q` from x [images pixels, channels], each number times the factor of its place in a line
// (null: 1), by the largest magnitude of each image / 127; to nearest. The scale of an image that
// is not finite is not finite either.
void quantize_images(const BorderedImages& q, const Tensor& x, const float* line_factors);

// Returns the sums of all codes in each pixel's window of 2 border + 1 pixels, in scratch.
std::int32_t* sum_windows(Tape& tape, const BorderedImages& x);

}  // namespace tritgrad
