#include "models/export/image_extent.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace tritgrad {
namespace {

// Returns the longer side of the box around what is above 0, as a share of the field's; 0: nothing
// is.
double longer_side(const ImageShape& image, const std::vector<float>& pixels) {
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
  if (bottom == 0) return 0.0;
  return std::max(static_cast<double>(bottom - top) / static_cast<double>(image.height),
                  static_cast<double>(right - left) / static_cast<double>(image.width));
}

}  // namespace

ImageExtent measure_images(const Dataset& dataset) {
  if (!dataset.is_image()) return {};
  std::vector<float> pixels(static_cast<std::size_t>(dataset.features));
  float white = 0.0f;
  double sum = 0.0;
  std::int64_t images = 0;
  for (std::int64_t row = 0; row < dataset.rows; ++row) {
    dataset.gather(row, pixels.data());
    white = std::max(white, *std::max_element(pixels.begin(), pixels.end()));
    const double side = longer_side(dataset.image, pixels);
    sum += side;
    images += side > 0.0 ? 1 : 0;
  }
  if (images == 0) return {};
  return {white, static_cast<float>(sum / static_cast<double>(images))};
}

}  // namespace tritgrad
