// Images between layers: a row of x is a pixel, its columns are the channels.
#pragma once

#include "engine/check.h"
#include "engine/data/image_shape.h"
#include "engine/tape.h"

namespace tritgrad {

// The number of images in x. Throws Error, in the name of `op`, where there are none or half ones.
inline std::int64_t count_images(const char* op, const Var& x, const ImageShape& image) {
  check(
      image.size() > 0 && x.value.cols() == image.channels && x.value.rows() % image.pixels() == 0,
      op, ": x has shape ", x.shape().str(), ", which is no number of images of ", image.height,
      " x ", image.width, " pixels of ", image.channels, " channels");
  return x.value.rows() / image.pixels();
}

}  // namespace tritgrad
