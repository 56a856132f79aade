// The shape of an image whose pixels are the numbers of one row.
#pragma once

#include <cstdint>

namespace tritgrad {

// Rows of pixels from the top, each from the left, and the channels of a pixel beside each other
// (height x width x channels). All 0: the numbers are no image.
struct ImageShape {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;

  constexpr std::int64_t pixels() const { return height * width; }
  constexpr std::int64_t size() const { return pixels() * channels; }
  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

}  // namespace tritgrad
