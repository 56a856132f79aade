// Pooling of images: x [n h w, c], the pixels of n images of one shape, c channels beside each
// other.
#pragma once

#include "engine/data/image_shape.h"
#include "engine/tape.h"

namespace tritgrad {

// Returns the shape that max_pool makes of an image's; a last odd line or column is dropped.
inline ImageShape pooled(const ImageShape& image) {
  return {image.height / 2, image.width / 2, image.channels};
}

// x [n h w, c] -> y [n (h / 2) (w / 2), c], the largest of each 2 x 2 pixels, channel by channel.
// The gradient goes to the first of equals, and none to what is dropped. NaN stays NaN. Throws
// Error when x is no number of images, or there are less than 2 x 2 pixels.
Var max_pool(Tape& tape, const Var& x, const ImageShape& image);

// x [n h w, c] -> y [n, c], the mean over all pixels of each image. Throws Error when x is no
// number of images.
Var average_pool(Tape& tape, const Var& x, const ImageShape& image);

}  // namespace tritgrad
