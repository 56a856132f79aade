// A page as text; tests/scripts/html_page.sh opens pages in a browser.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <numbers>
#include <string>
#include <string_view>

#include "engine/data/open_dataset.h"
#include "models/export/html_page.h"
#include "models/export/js_module.h"
#include "tests/support/support.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_html_page {
namespace {

std::int64_t occurrences(std::string_view text, std::string_view part) {
  std::int64_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++count;
  return count;
}

// Some inputs and two classes, one of which has this name.
InferenceNetwork network_of(std::int64_t inputs, const std::string& class_name) {
  InferenceProduct product;
  product.name = "head";
  product.inputs = product.group = inputs;
  product.outputs = 2;
  product.trits.assign(static_cast<std::size_t>(2 * inputs), 1);
  product.scales = {1.0f, 1.0f};
  product.in_integers = true;
  InferenceNetwork network{
      .inputs = inputs, .class_names = {class_name, "b"}, .means = {0.0f}, .inverse_stds = {1.0f}};
  network.layers.push_back({.product = std::move(product), .bias = {0.0f, 0.0f}});
  return network;
}

// Images of these pixels.
Dataset images_of(const ImageShape& image, const std::vector<std::vector<float>>& rows) {
  Dataset data;
  data.allocate(std::ssize(rows), image.size(), Element::kFloat32);
  data.image = image;
  float* out = data.values.as<float>();
  for (const std::vector<float>& row : rows) out = std::copy(row.begin(), row.end(), out);
  return data;
}

}  // namespace

TEST_CASE("html page: texts of users are texts, wherever they stand") {
  const std::string nasty = "</script></title><b>&amp;\"@SCRIPT@@ABOUT@\x01\xFF";
  const std::string shown =
      "&lt;/script&gt;&lt;/title&gt;&lt;b&gt;&amp;amp;&quot;@SCRIPT@@ABOUT@?\xEF\xBF\xBD";
  const InferenceNetwork network = network_of(3, nasty);
  const std::string page = html_page(network, {nasty, {nasty, nasty, export_signature()}}, {});
  CHECK(is_export(page));
  CHECK(occurrences(page, shown) == 4);  // title, head line, model, sentence of the foot
  for (const char* once :
       {"<script", "</script>", "<style>", "</style>", "</title>", "<!DOCTYPE"}) {
    CAPTURE(once);
    CHECK(occurrences(page, once) == 1);
  }
  CHECK(occurrences(page, "<b>") == 0);
  CHECK(page == html_page(network, {nasty, {nasty, nasty, export_signature()}}, {}));
  // No place is left but those that the names hold: in four texts, two comments of the module, and
  // the name of a class.
  CHECK(occurrences(page, "@SCRIPT@") == 7);
}

TEST_CASE("html page: it holds the module, and asks no network") {
  const InferenceNetwork network = network_of(3, "a");
  const ExportHead head{"m", {"A model.", "Accurate.", export_signature()}};
  const std::string page = html_page(network, head, {});
  CHECK(occurrences(page, js_module(network, head, {})) == 1);
  CHECK(occurrences(page, "default-src 'none'") == 1);
  for (const char* part : {"http:", "https:", "import(", "@import", "url(", "XMLHttp", "fetch("}) {
    CAPTURE(part);
    CHECK(occurrences(page, part) == 0);
  }
  CHECK(occurrences(page,
                    "The network takes 26 bytes: weights 2, scales 8, norms and inputs 16.") == 1);
}

TEST_CASE("html page: images that no browser shows are refused") {
  InferenceNetwork network = network_of(4, "a");
  check_html_page(network, {});
  for (const std::int64_t channels : {1, 3}) {
    network.image = {2, 2, channels};
    check_html_page(network, {});
  }
  network.image = {2, 1, 2};
  CHECK(refusal([&] { check_html_page(network, {}); }).find("images of 2 channels found") !=
        std::string::npos);
}

TEST_CASE("image extent: the largest pixel, and the mean of the boxes around what is drawn") {
  // Boxes of 2 rows of 4, and of 3 columns of 5, which are the longer sides; one image is black.
  std::vector<float> high(20, 0.0f), wide(20, 0.0f);
  high[1 * 5 + 2] = high[2 * 5 + 2] = 3.0f;
  wide[2 * 5 + 1] = wide[2 * 5 + 3] = 7.5f;
  const std::vector<float> black(20, 0.0f);
  const ImageExtent extent = measure_images(images_of({4, 5, 1}, {high, black, wide}));
  CHECK(extent.white == 7.5f);
  CHECK(extent.ink == doctest::Approx((0.5 + 0.6) / 2).epsilon(1e-6));
  // Either channel counts: the second one of pixel 1, and the first one of pixel 3 of a line.
  std::vector<float> colours(2 * 25, 0.0f);
  colours[2 * (5 + 1) + 1] = colours[2 * (5 + 3)] = 1.0f;
  CHECK(measure_images(images_of({5, 5, 2}, {colours})).ink == doctest::Approx(0.6).epsilon(1e-6));
  CHECK(measure_images(images_of({4, 5, 1}, {black})).white == 255.0f);
  CHECK(measure_images(builtin_dataset("iris")).ink == 1.0f);
  const ImageExtent digits = measure_images(builtin_dataset("digits"));
  CHECK(digits.white == 16.0f);
  CHECK(digits.ink > 0.99f);
}

TEST_CASE("image extent: how wide strokes are, blurred or not, beside the box around them") {
  // A line down the middle of a field, 12 of 24 pixels high and 3 wide, differs from what is around
  // it by 2 * (12 + 3) for a sum of 36; of the blurred one all lines have the same sums of both.
  std::vector<float> line(24 * 24, 0.0f), blurred(24 * 24, 0.0f);
  constexpr float kBlurred[] = {1.0f, 2.0f, 3.0f, 2.0f, 1.0f};
  for (std::size_t row = 6; row < 18; ++row) {
    for (std::size_t i = 0; i < 3; ++i) line[row * 24 + 10 + i] = 3.0f;
    for (std::size_t i = 0; i < 5; ++i) blurred[row * 24 + 9 + i] = kBlurred[i];
  }
  const double pen = 8.0 / std::numbers::pi * 36.0 / 30.0 / 12.0;
  CHECK(measure_images(images_of({24, 24, 1}, {line})).pen == doctest::Approx(pen).epsilon(1e-6));
  CHECK(measure_images(images_of({24, 24, 1}, {blurred})).pen ==
        doctest::Approx(pen).epsilon(1e-6));
  // One that leaves the field at its bottom right corner is as wide: its edges are there.
  std::vector<float> corner(24 * 24, 0.0f);
  for (std::size_t row = 12; row < 24; ++row) {
    for (std::size_t column = 21; column < 24; ++column) corner[row * 24 + column] = 1.0f;
  }
  CHECK(measure_images(images_of({24, 24, 1}, {corner})).pen == doctest::Approx(pen).epsilon(1e-6));
  // A field that is white all over reaches the upper end.
  CHECK(measure_images(images_of({4, 4, 1}, {std::vector<float>(16, 2.0f)})).pen ==
        doctest::Approx(2.0 / std::numbers::pi).epsilon(1e-6));
  // Digits of 8 x 8 pixels fill them with strokes of a fifth.
  const float digits = measure_images(builtin_dataset("digits")).pen;
  CHECK(digits > 0.19f);
  CHECK(digits < 0.21f);
}

}  // namespace tritgrad::test::test_html_page
