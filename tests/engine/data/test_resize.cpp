// Images made smaller: means over exact areas, rounded to what the data hold.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "engine/data/open_dataset.h"
#include "engine/data/resize.h"
#include "engine/memory/parallel.h"
#include "tests/support/support.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_resize {
namespace {

Dataset images_of(const ImageShape& image, std::int64_t rows, Element element) {
  Dataset data;
  data.name = "pictures";
  data.allocate(rows, image.size(), element);
  data.image = image;
  return data;
}

Dataset bytes_of(const ImageShape& image, const std::vector<std::uint8_t>& pixels) {
  Dataset data = images_of(image, std::ssize(pixels) / image.size(), Element::kByte);
  std::copy(pixels.begin(), pixels.end(), data.values.as<std::uint8_t>());
  return data;
}

std::vector<std::uint8_t> bytes_in(const Dataset& data) {
  const auto* first = data.values.as<std::uint8_t>();
  return {first, first + data.rows * data.features};
}

// The means by another road: every old pixel is cut into side x side parts and every new one is
// made of as many parts as there are old pixels, in whole numbers.
std::vector<std::int64_t> sums_of_parts(const ImageShape& image, std::int64_t side,
                                        const std::vector<std::uint8_t>& pixels) {
  std::vector<std::int64_t> sums(static_cast<std::size_t>(side * side * image.channels), 0);
  for (std::int64_t y = 0; y < image.height * side; ++y) {
    for (std::int64_t x = 0; x < image.width * side; ++x) {
      for (std::int64_t c = 0; c < image.channels; ++c) {
        const std::int64_t to = (y / image.height * side + x / image.width) * image.channels + c;
        const std::int64_t from = (y / side * image.width + x / side) * image.channels + c;
        sums[static_cast<std::size_t>(to)] += pixels[static_cast<std::size_t>(from)];
      }
    }
  }
  return sums;
}

}  // namespace

TEST_CASE("resize: a new pixel is the mean of the area that it covers, halves rounded up") {
  Dataset data = bytes_of({2, 4, 1}, {10, 20, 0, 1, 30, 40, 0, 1, 0, 0, 255, 255, 1, 0, 255, 254});
  resize_images(data, 2);
  CHECK(bytes_in(data) == std::vector<std::uint8_t>{15, 1, 35, 1, 0, 255, 1, 255});
  CHECK(data.image == ImageShape{2, 2, 1});
  CHECK(data.features == 4);
  CHECK(data.rows == 2);
  Dataset thirds = bytes_of({3, 3, 1}, {9, 0, 0, 0, 0, 0, 0, 0, 90});
  resize_images(thirds, 2);
  // Each covers 1.5 x 1.5 pixels: 9 / 2.25, and half of that pixel's neighbours, which are 0.
  CHECK(bytes_in(thirds) == std::vector<std::uint8_t>{4, 0, 0, 40});
}

TEST_CASE("resize: bytes are the exact means of all sizes and channels") {
  for (const ImageShape& image : {ImageShape{28, 28, 1}, {7, 5, 3}, {6, 11, 2}, {4, 4, 1}}) {
    for (std::int64_t side = 1; side <= std::min(image.height, image.width); ++side) {
      CAPTURE(side);
      std::vector<std::uint8_t> pixels;
      for (const float x : numbers(image.size(), 5)) {
        pixels.push_back(static_cast<std::uint8_t>(127.5f + 127.0f * x));
      }
      std::vector<std::uint8_t> expected;
      for (const std::int64_t sum : sums_of_parts(image, side, pixels)) {
        const std::int64_t parts = image.pixels();
        expected.push_back(static_cast<std::uint8_t>((2 * sum + parts) / (2 * parts)));
      }
      Dataset data = bytes_of(image, pixels);
      resize_images(data, side);
      CHECK(bytes_in(data) == expected);
    }
  }
}

TEST_CASE("resize: floats stay floats, labels and the published test rows stay, names go") {
  Dataset digits = open_dataset("digits");
  digits.feature_names.assign(64, "pixel");
  digits.published_test_rows = 100;
  const DataVector<std::int32_t> labels = digits.labels;
  std::vector<float> before(64), after(16);
  digits.gather(7, before.data());
  Dataset alone = open_dataset("digits");
  set_thread_count(1);
  resize_images(alone, 4);
  set_thread_count(3);  // of which two get rows
  resize_images(digits, 4);
  set_thread_count(0);
  digits.gather(7, after.data());
  CHECK(std::equal(digits.values.as<float>(), digits.values.as<float>() + digits.rows * 16,
                   alone.values.as<float>()));
  // Sums of four small whole numbers and their quarters are exact.
  CHECK(after[5] == (before[18] + before[19] + before[26] + before[27]) / 4.0f);
  CHECK(digits.element == Element::kFloat32);
  CHECK(digits.labels == labels);
  CHECK(digits.feature_names.empty());
  CHECK(digits.published_test_rows == 100);
  const float* values = digits.values.as<float>();
  resize_images(digits, 4);  // of that size already
  CHECK(digits.values.as<float>() == values);
}

TEST_CASE("resize: what is no image, and images that are smaller, are refused") {
  Dataset iris = open_dataset("iris"), flat = bytes_of({2, 3, 1}, {1, 2, 3, 4, 5, 6});
  CHECK(refusal([&] { resize_images(iris, 2); }) ==
        "--resize: 'iris' holds no images, and 2 x 2 pixels were asked for, here or when the model "
        "was trained; give images, or train without the option");
  CHECK(refusal([&] { resize_images(flat, 3); }) ==
        "--resize: the images of 'pictures' have 2 x 3 pixels, and 3 x 3 were asked for, here or "
        "when the model was trained; images are made smaller alone: train with at most 2");
}

}  // namespace tritgrad::test::test_resize
