// dW and d scale of a convolution in integers: the third product beside those of
// ops/products/integer_convolution.h.
//
// dW[o][window line, pixel of it, channel] is the sum over all pixels of dy times what the window
// has there, with the pixels as the depth of the product. A line of the window is a run of
// neighbouring columns, so that codes of x are packed once for the runs of all pixels, and the
// lines of the window are the same panels, a line of the image further down.
#pragma once

#include "ops/products/bordered_images.h"
#include "ops/products/linear.h"
#include "ops/products/quantized.h"

namespace tritgrad {

// dy times the scales of x's images, each output by its absmax / 127, with the pixels of an image
// as neighbours: code [image][output][line][pixel]. Lines are filled up with zeros to fours.
struct DepthCodes {
  ImageShape image;  // with the outputs as channels
  std::int64_t images;
  std::int64_t ld;  // from an output to the next one
  std::int8_t* codes;
  float* scales;   // [outputs]
  float* inverse;  // [outputs], of what makes codes

  std::int64_t line_bytes() const { return round_up(image.width, 4); }
  std::int8_t* at(std::int64_t index, std::int64_t output, std::int64_t line) const {
    return codes + (index * image.channels + output) * ld + line * line_bytes();
  }
  // Sets scales and inverses from the largest magnitudes [images x outputs] of dy times the scales
  // of x.
  void set_scales(const float* largest) const;
  // Makes the codes of some lines of dy [lines width, outputs], with the scale of x's image.
  void quantize_lines(std::int64_t index, std::int64_t first, std::int64_t lines, const float* dy,
                      float scale) const;
};
DepthCodes allocate_depth_codes(Tape& tape, const ImageShape& image, std::int64_t images);

// Adds dW to the gradient of the weight, and d scale to that of its scale. dy_y are the sums of dy
// y down the columns, of which d scale is made. W has one scale a row.
void convolution_backward_weight(Tape& tape, const LinearOperands& w, std::int64_t size,
                                 const BorderedImages& x, const DepthCodes& dy, const double* dy_y);

}  // namespace tritgrad
