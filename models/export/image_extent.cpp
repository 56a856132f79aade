#include "models/export/image_extent.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace tritgrad {
namespace {

// The box around what is above 0, in pixels; of size 0: nothing is.
struct InkBox {
  std::int64_t height = 0, width = 0;
};

InkBox box_of(const ImageShape& image, const std::vector<float>& pixels) {
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
  std::int64_t top = kFar, left = kFar, bottom = 0, right = 0;
  for (std::int64_t at = 0; at < image.size(); ++at) {
    if (!(pixels[static_cast<std::size_t>(at)] > 0.0f)) continue;
    const std::int64_t row = at / image.channels / image.width;
    const std::int64_t column = at / image.channels % image.width;
    top = std::min(top, row);
    bottom = std::max(bottom, row + 1);
    left = std::min(left, column);
    right = std::max(right, column + 1);
  }
  if (bottom == 0) return {};
  return {bottom - top, right - left};
}

// The mean width of strokes in pixels. A stroke of length l, width w and brightness b adds l w b to
// the sum of all pixels and 2 l b to what they differ by across it, however blurred its two edges
// are. Neighbours in lines and columns differ by 4 / pi of that, by the mean over all directions of
// strokes: |cos| + |sin|. So w is 8 / pi times the first sum over the second one. In a box of
// height h and width w differences are 2 / h + 2 / w of the sum at least, which makes the result
// 2 / pi of the box's longer side at most.
double stroke_width(const ImageShape& image, const std::vector<float>& pixels) {
  const auto ink_at = [&](std::int64_t row, std::int64_t column, std::int64_t channel) {
    if (row < 0 || column < 0) return 0.0;
    const std::int64_t at = (row * image.width + column) * image.channels + channel;
    return static_cast<double>(std::max(0.0f, pixels[static_cast<std::size_t>(at)]));
  };
  double sum = 0.0, differences = 0.0;
  for (std::int64_t row = 0; row < image.height; ++row) {
    for (std::int64_t column = 0; column < image.width; ++column) {
      for (std::int64_t channel = 0; channel < image.channels; ++channel) {
        const double ink = ink_at(row, column, channel);
        sum += ink;
        differences += std::abs(ink - ink_at(row - 1, column, channel)) +
                       std::abs(ink - ink_at(row, column - 1, channel));
        if (row + 1 == image.height) differences += ink;
        if (column + 1 == image.width) differences += ink;
      }
    }
  }
  return 8.0 / std::numbers::pi * sum / differences;
}

}  // namespace

ImageExtent measure_images(const Dataset& dataset) {
  if (!dataset.is_image()) return {};
  const ImageShape& image = dataset.image;
  std::vector<float> pixels(static_cast<std::size_t>(dataset.features));
  float white = 0.0f;
  double sides = 0.0, pens = 0.0, images = 0.0;
  for (std::int64_t row = 0; row < dataset.rows; ++row) {
    dataset.gather(row, pixels.data());
    const InkBox box = box_of(image, pixels);
    if (box.height == 0) continue;
    white = std::max(white, *std::max_element(pixels.begin(), pixels.end()));
    sides += std::max(static_cast<double>(box.height) / static_cast<double>(image.height),
                      static_cast<double>(box.width) / static_cast<double>(image.width));
    pens += stroke_width(image, pixels) / static_cast<double>(std::max(box.height, box.width));
    images += 1.0;
  }
  if (images == 0.0) return {};
  return {white, static_cast<float>(sides / images), static_cast<float>(pens / images)};
}

}  // namespace tritgrad
