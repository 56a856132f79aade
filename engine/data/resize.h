// Images made smaller, each new pixel the mean of the area of the old image that it covers.
#pragma once

#include <cstdint>

#include "engine/data/dataset.h"

namespace tritgrad {

// Makes images of side x side pixels of those in `dataset`, as area interpolation does: an old
// pixel of which a new one covers a part counts by that part. Sums are in double; the mean is
// rounded to what the data hold, bytes or fp32, halves of bytes up. Images of that size stay as
// they are. Throws Error for data that are no images, and for images that have fewer pixels on a
// side.
void resize_images(Dataset& dataset, std::int64_t side);

}  // namespace tritgrad
