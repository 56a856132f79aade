#include "engine/data/augmentation.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "engine/check.h"

namespace tritgrad {
namespace {

void read_part(const std::string& part, const std::string& text, Augmentation& augmentation) {
  // The random crop of an image with a border of zeros, by its usual name.
  constexpr std::string_view kShift = "shift=", kCrop = "crop=";
  if (part == "flip") {
    check(!augmentation.flip, "augmentation '", text, "': flip is named twice");
    augmentation.flip = true;
    return;
  }
  const std::string_view name = part.starts_with(kCrop) ? kCrop : kShift;
  check(part.starts_with(name), "augmentation '", text, "': '", part,
        "' found, crop=PIXELS (or shift=PIXELS, which is the same), flip or none expected");
  check(augmentation.shift == 0, "augmentation '", text,
        "': crop or shift, which are the same, is named twice");
  const char* end = part.data() + part.size();
  const auto [rest, error] = std::from_chars(part.data() + name.size(), end, augmentation.shift);
  check(error == std::errc() && rest == end && augmentation.shift >= 1 &&
            augmentation.shift <= 1 << 15,
        "augmentation '", text, "': '", part,
        "' found, a whole number of pixels in 1..32768 expected behind ", name);
}

void flip_rows(float* image, const ImageShape& shape) {
  const std::int64_t row_size = shape.width * shape.channels;
  for (float* row = image; row < image + shape.size(); row += row_size) {
    for (std::int64_t left = 0, right = shape.width - 1; left < right; ++left, --right) {
      std::swap_ranges(row + left * shape.channels, row + (left + 1) * shape.channels,
                       row + right * shape.channels);
    }
  }
}

// Down by `down` and right by `right` pixels. Rows are taken in the order in which none is
// overwritten before it has been moved.
void shift_image(float* image, const ImageShape& shape, std::int64_t down, std::int64_t right) {
  const std::int64_t row_size = shape.width * shape.channels;
  const std::int64_t kept = (shape.width - std::abs(right)) * shape.channels;
  const std::int64_t margin = row_size - kept;
  for (std::int64_t k = 0; k < shape.height; ++k) {
    const std::int64_t y = down > 0 ? shape.height - 1 - k : k;
    float* to = image + y * row_size;
    if (y - down < 0 || y - down >= shape.height) {
      std::fill_n(to, row_size, 0.0f);
      continue;
    }
    const float* from = to - down * row_size;
    std::memmove(to + (right > 0 ? margin : 0), from + (right > 0 ? 0 : margin),
                 static_cast<std::size_t>(kept) * sizeof(float));
    std::fill_n(to + (right > 0 ? 0 : kept), margin, 0.0f);
  }
}

}  // namespace

Augmentation parse_augmentation(const std::string& text) {
  Augmentation augmentation;
  if (text.empty() || text == "none") return augmentation;
  for (std::size_t begin = 0, comma = 0; comma < text.size(); begin = comma + 1) {
    comma = std::min(text.find(',', begin), text.size());
    read_part(text.substr(begin, comma - begin), text, augmentation);
  }
  return augmentation;
}

std::string to_text(const Augmentation& augmentation) {
  const std::string shift =
      augmentation.shift > 0 ? "shift=" + std::to_string(augmentation.shift) : "";
  if (!augmentation.flip) return shift;
  return shift.empty() ? "flip" : shift + ",flip";
}

void check_augmentation(const Augmentation& augmentation, const Dataset& dataset) {
  if (!augmentation.changes_anything()) return;
  check(dataset.is_image(), "augmentation: '", dataset.name,
        "' holds no images; leave it out for data of this kind");
  const std::int64_t smaller = std::min(dataset.image.height, dataset.image.width);
  check(augmentation.shift < smaller, "augmentation: a crop or shift by ", augmentation.shift,
        " found, less than ", smaller, " expected for the images of '", dataset.name, "', ",
        dataset.image.height, " x ", dataset.image.width, " pixels");
}

void augment(float* image, const ImageShape& shape, const Augmentation& augmentation,
             const RandomKey& key, std::uint64_t index) {
  // An image has four random numbers, of which three are used.
  const std::uint64_t first = 4 * index;
  if (augmentation.flip && random_bits(key, first) >> 31 == 1) flip_rows(image, shape);
  if (augmentation.shift == 0) return;
  const auto draw = [&](std::uint64_t i) {
    return std::int64_t{
               random_below(key, i, static_cast<std::uint32_t>(2 * augmentation.shift + 1))} -
           augmentation.shift;
  };
  shift_image(image, shape, draw(first + 1), draw(first + 2));
}

}  // namespace tritgrad
