// How the images of a data set fill their range and their field, so that others can be made alike.
#pragma once

#include "engine/data/dataset.h"

namespace tritgrad {

struct ImageExtent {
  float white = 255.0f;  // the largest pixel
  // The longer side of the box around all pixels above 0, as a share of the field's side, by the
  // mean: 20/28 for MNIST's digits.
  float ink = 1.0f;
  // How wide the strokes of a drawing are, as a share of the longer side of its box in pixels, by
  // the mean, from above 0 to 2 / pi: 0.13 for MNIST's digits, 0.2 for the data set `digits`.
  float pen = 0.1f;
};

// Returns what all images of the data are like; the defaults, for those that are no images and for
// black ones.
ImageExtent measure_images(const Dataset& dataset);

}  // namespace tritgrad
