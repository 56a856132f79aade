// Convolutions of images in 16 bits: dx, beside the product of ops/products/integer_convolution.h.
//
// Most numbers of a gradient are far smaller than the largest of their image. By int8 little would
// be left of them, and networks of six convolutions learn half as much. So what the codes leave is
// a second image of codes, each of which counts a kFiner-th, and two products make one; and sums
// become levels by the largest sum of their image instead of the largest that there could be.
#pragma once

#include <cstdint>
#include <limits>

#include "ops/products/image_levels.h"

namespace tritgrad {

// A number is about the scale of its image in `high` times (high + low / kFiner).
struct FineImages {
  BorderedImages high;
  BorderedImages low;  // what those codes leave; the scales are not used
};

// The most numbers of a window whose sums of codes times (trit + 1) fit in 32 bits.
inline constexpr std::int64_t kLongestFineSum =
    std::numeric_limits<std::int32_t>::max() / (2 * kLargestCode * (kFiner + 1));

// Sets levels, factors and ranges of `out` to the sums of the windows of x, which have at most
// kLongestFineSum numbers.
void convolve_finely(Tape& tape, const FineImages& x, const WindowPanels& w, ImageLevels out);

}  // namespace tritgrad
