#include "engine/data/resize.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/check.h"
#include "engine/memory/parallel.h"

namespace tritgrad {
namespace {

// The stretch of `from` old pixels that new pixel number `to` of `side` covers, in units of which
// an old pixel has `side` and a new one `from`, so that all numbers are whole.
struct Cover {
  std::int64_t first, last;  // old pixels [first, last)
  std::int64_t begin, end, side;

  Cover(std::int64_t to, std::int64_t from, std::int64_t sides)
      : first(to * from / sides),
        last(((to + 1) * from + sides - 1) / sides),
        begin(to * from),
        end((to + 1) * from),
        side(sides) {}
  // How much of an old pixel is covered.
  double of(std::int64_t pixel) const {
    return static_cast<double>(std::min(end, (pixel + 1) * side) - std::max(begin, pixel * side));
  }
};

template <typename Number>
Number rounded(double mean) {
  if constexpr (std::is_same_v<Number, float>) {
    return static_cast<float>(mean);
  } else {
    return static_cast<Number>(std::floor(mean + 0.5));
  }
}

template <typename Number>
void resize_image(const Number* from, const ImageShape& old, Number* to, std::int64_t side) {
  const auto area = static_cast<double>(old.pixels());
  std::vector<double> sums(static_cast<std::size_t>(old.channels));
  for (std::int64_t i = 0; i < side * side; ++i) {
    const Cover lines(i / side, old.height, side), columns(i % side, old.width, side);
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::int64_t line = lines.first; line < lines.last; ++line) {
      for (std::int64_t column = columns.first; column < columns.last; ++column) {
        const double share = lines.of(line) * columns.of(column);
        const Number* pixel = from + (line * old.width + column) * old.channels;
        for (double& sum : sums) sum += share * static_cast<double>(*pixel++);
      }
    }
    for (const double sum : sums) *to++ = rounded<Number>(sum / area);
  }
}

template <typename Number>
void resize_rows(const Dataset& old, Dataset& made) {
  const std::int64_t images = std::max<std::int64_t>(1, 65536 / old.features);
  parallel_ranges(old.rows, images, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      resize_image(old.values.as<Number>() + row * old.features, old.image,
                   made.values.as<Number>() + row * made.features, made.image.height);
    }
  });
}

}  // namespace

void resize_images(Dataset& dataset, std::int64_t side) {
  check(dataset.is_image(), "--resize: '", dataset.name, "' holds no images, and ", side, " x ",
        side,
        " pixels were asked for, here or when the model was trained; give images, or train "
        "without the option");
  const ImageShape image = dataset.image;
  check(side <= image.height && side <= image.width, "--resize: the images of '", dataset.name,
        "' have ", image.height, " x ", image.width, " pixels, and ", side, " x ", side,
        " were asked for, here or when the model was trained; images are made smaller alone: train "
        "with at most ",
        std::min(image.height, image.width));
  if (image.height == side && image.width == side) return;
  Dataset made;
  made.name = dataset.name;
  made.allocate(dataset.rows, side * side * image.channels, dataset.element);
  made.image = {side, side, image.channels};
  if (dataset.element == Element::kByte) {
    resize_rows<std::uint8_t>(dataset, made);
  } else {
    resize_rows<float>(dataset, made);
  }
  dataset.features = made.features;
  dataset.image = made.image;
  dataset.values = std::move(made.values);
  dataset.feature_names.clear();  // of pixels that are gone
}

}  // namespace tritgrad
