// A convolution in integers, batch norm, rectifier and max pooling as one op: against their
// definition in double within derived bounds, and the same bits on every instruction set and for
// any number of threads.
#include <algorithm>
#include <cmath>
#include <string>

#include "engine/check.h"
#include "engine/kernels/kernels.h"
#include "engine/memory/parallel.h"
#include "ops/products/fine_convolution.h"
#include "tests/support/direct_conv_norm.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_conv_norm {
namespace {

// Odd sizes, one channel to 130, images of one pixel, one line and one column, windows larger than
// the image; pooling that drops a line and a column, lines of more than one stretch of pixels.
const std::vector<NormCase> kCases = {
    {{{5, 7, 1}, 3, 3, 4}},
    {{{5, 7, 3}, 2, 3, 33}, Pool::kYes},
    {{{1, 1, 6}, 9, 3, 5}},
    {{{1, 9, 2}, 2, 3, 3}},
    {{{8, 1, 3}, 2, 5, 2}},
    {{{2, 3, 4}, 3, 7, 6}, Pool::kYes},
    {{{4, 4, 5}, 2, 1, 70}, Pool::kYes},
    {{{3, 70, 8}, 2, 3, 17}, Pool::kYes},
    {{{8, 8, 64}, 3, 3, 64}, Pool::kYes},
    {{{6, 5, 130}, 2, 3, 67}},
    {{{4, 6, 31}, 2, 3, 130}, Pool::kYes},
};

// Images of whole numbers with 127 as the largest magnitude, which rounding leaves as they are.
std::vector<float> whole_images(const Convolved& c) {
  std::vector<float> x = numbers(c.images * c.image.size(), 3);
  for (float& v : x) v = std::nearbyint(v * 126.0f);
  for (std::int64_t i = 0; i < c.images; ++i) {
    x[static_cast<std::size_t>(i * c.image.size() + i % c.image.size())] = 127.0f;
  }
  return x;
}

ImageVar images_of(Tape& tape, const Convolved& c, std::vector<float>& x) {
  return quantize_images(tape, {x.data(), {c.images, c.image.size()}}, c.image, {c.size});
}

std::vector<double> numbers_of(const BorderedImages& x) {
  std::vector<double> all;
  for (std::int64_t image = 0; image < x.images; ++image) {
    for (std::int64_t line = 0; line < x.image.height; ++line) {
      const std::int8_t* codes = x.line(image, line);
      for (std::int64_t i = 0; i < x.image.width * x.image.channels; ++i) {
        all.push_back(double{x.scales[image]} * codes[i]);
      }
    }
  }
  return all;
}

std::vector<double> numbers_of(const ImageLevels& x) {
  check(x.levels != nullptr, "there are no levels");
  std::vector<double> all;
  for (std::int64_t i = 0; i < x.images * x.image.size(); ++i) {
    all.push_back(double{x.factors[i / x.image.size()]} * x.levels[i]);
  }
  return all;
}

void check_near(const std::vector<double>& actual, const std::vector<double>& expected,
                const std::function<double(std::size_t)>& bound) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(i);
    REQUIRE(std::abs(actual[i] - expected[i]) <= bound(i));
  }
}

std::vector<double> values(const Tensor& t) { return {t.values().begin(), t.values().end()}; }

// A few roundings to float of numbers of that size.
double slack(double size) { return size * 0x1p-16; }

}  // namespace

TEST_CASE("conv_norm: forward and all gradients are those of convolution, norm and pooling") {
  for (const NormCase& c : kCases) {
    CAPTURE(c.c.image.height);
    CAPTURE(c.c.image.channels);
    CAPTURE(c.c.outputs);
    NormLayer layer(c, FormatKind::kLatent8, 5);
    Tape tape;
    std::vector<float> pixels = whole_images(c.c);
    const ImageVar x = images_of(tape, c.c, pixels);
    const Var y = layer.run_floats(tape, x);
    const ImageShape out = shape_of(c);
    const std::vector<float> dy = numbers(c.c.images * out.size(), 4);
    const std::vector<float> scales(x.images.scales, x.images.scales + c.c.images);
    const DirectNorm direct(layer, numbers_of(x.images), scales, dy);
    check_near(values(y.value), direct.y, [&](std::size_t i) { return slack(8.0 + direct.y[i]); });
    const auto outputs = static_cast<std::size_t>(c.c.outputs);
    for (std::size_t o = 0; o < outputs; ++o) {
      // The running statistics began as 0; a tenth of the batch's is in them.
      const double size = std::sqrt(direct.unbiased[o]) + std::abs(direct.mean[o]);
      CHECK(std::abs(decoded(layer.mean().storage())[o] - 0.1 * direct.mean[o]) <= slack(size));
      CHECK(std::abs(decoded(layer.variance().storage())[o] - 0.1 * direct.unbiased[o]) <=
            slack(size * size));
    }
    const Var loss = loss_with_gradient(tape, y, dy);
    const auto rows = static_cast<double>(c.c.rows());
    tape.backward(loss, [&](Parameter& p) {
      CAPTURE(p.name());
      const std::vector<double> grad = values(p.grad);
      // Sums of as many products of numbers below 8.
      if (p.name() == "g") {
        check_near(grad, direct.dgain, [&](std::size_t) { return slack(8.0 * rows); });
      } else if (p.name() == "b") {
        check_near(grad, direct.dbias, [&](std::size_t) { return slack(8.0 * rows); });
      } else if (p.name() == "s") {
        check_near(grad, direct.dscale, [&](std::size_t o) {
          return slack(8.0 * rows) * (1.0 + 1.0 / std::abs(decoded(layer.scale().storage())[o]));
        });
      } else {
        const std::vector<double> e = decoded(layer.scale().storage());
        std::vector<double> dw = direct.dw;
        const auto inputs = static_cast<std::size_t>(c.c.inputs());
        for (std::size_t i = 0; i < dw.size(); ++i) dw[i] *= e[i / inputs];
        check_near(grad, dw,
                   [&](std::size_t i) { return direct.dw_error[i] * std::abs(e[i / inputs]); });
      }
    });
  }
}

TEST_CASE("conv_norm: rounded to int8, and the gradient of what it reads within half a unit") {
  for (const NormCase& c : kCases) {
    CAPTURE(c.c.image.height);
    CAPTURE(c.c.image.channels);
    NormLayer first({{c.c.image, c.c.images, c.c.size, c.c.image.channels}}, FormatKind::kTrits, 9);
    NormLayer second(c, FormatKind::kTernary, 5);
    Tape tape;
    std::vector<float> pixels = whole_images(c.c);
    const ImageVar x = images_of(tape, c.c, pixels);
    const ImageVar h = first.run(tape, x);
    const Var y = second.run_floats(tape, h);
    const std::vector<float> dy = numbers(y.value.size(), 4);
    const std::vector<float> h_scales(h.images.scales, h.images.scales + c.c.images);
    // Codes are the norm's outputs, each image by its largest.
    const DirectNorm before(first, numbers_of(x.images),
                            std::vector<float>(x.images.scales, x.images.scales + c.c.images), {});
    check_near(numbers_of(h.images), before.y, [&](std::size_t i) {
      const auto image = i / static_cast<std::size_t>(c.c.image.size());
      return double{h_scales[image]} * 0.5 + slack(8.0 + before.y[i]);
    });
    const DirectNorm direct(second, numbers_of(h.images), h_scales, dy);
    const Var loss = loss_with_gradient(tape, y, dy);
    bool looked = false;
    tape.backward(loss, [&](Parameter& p) {
      if (&p != &second.weight()) return;
      looked = true;
      ImageLevels gradient = h.gradient;
      gradient.levels = reinterpret_cast<std::int16_t*>(h.var.grad().data);
      // Each number of dz is off by half a unit of its rest, a kFiner-th of dx_error, and by a few
      // roundings of what is at most 254 dx_error to float; and so may the last bits of the sum be.
      const double half = 1.0 / kFiner + 8.0 * 0x1p-24 * 254.0;
      const auto products = static_cast<double>(c.c.size * c.c.size * c.c.outputs);
      check_near(numbers_of(gradient), direct.dx, [&](std::size_t i) {
        const auto image = i / static_cast<std::size_t>(c.c.image.size());
        const double level = double{gradient.factors[image]} / 2.0;
        return half * direct.dx_error[image] * products + level + slack(1.0);
      });
      for (std::int64_t i = 0; i < gradient.images * gradient.image.size(); ++i) {
        const std::int64_t at =
            i / gradient.image.size() * gradient.image.channels + i % gradient.image.channels;
        REQUIRE(gradient.levels[i] >= gradient.least[at]);
        REQUIRE(gradient.levels[i] <= gradient.most[at]);
      }
    });
    CHECK(looked);
  }
}

namespace {

// Everything that two layers leave.
std::vector<std::vector<double>> all_of(const NormCase& c) {
  NormLayer first({{c.c.image, c.c.images, c.c.size, c.c.image.channels}}, FormatKind::kTrits, 9);
  NormLayer second(c, FormatKind::kLatent8, 5);
  Tape tape;
  std::vector<float> pixels = numbers(c.c.images * c.c.image.size(), 3);
  const ImageVar h = first.run(tape, images_of(tape, c.c, pixels));
  const Var y = second.run_floats(tape, h);
  std::vector<std::vector<double>> all = {numbers_of(h.images), values(y.value)};
  const std::vector<float> dy = numbers(y.value.size(), 4);
  const Var loss = loss_with_gradient(tape, y, dy);
  tape.backward(loss, [&](Parameter& p) { all.push_back(values(p.grad)); });
  for (const NormLayer* layer : {&first, &second}) {
    all.push_back(decoded(layer->mean().storage()));
    all.push_back(decoded(layer->variance().storage()));
  }
  return all;
}

}  // namespace

TEST_CASE("conv_norm: the same bits on every instruction set and for any number of threads") {
  const std::string before = kernels().name;
  for (const NormCase& c : kCases) {
    use_kernels("reference");
    set_thread_count(1);
    const auto expected = all_of(c);
    for (const KernelTables* table : supported_kernels()) {
      use_kernels(table->name);
      for (int threads : {1, 3}) {
        set_thread_count(threads);
        CAPTURE(table->name);
        CAPTURE(c.c.image.channels);
        CHECK(all_of(c) == expected);
      }
    }
  }
  set_thread_count(0);
  use_kernels(before.c_str());
}

TEST_CASE("conv_norm: an output of scale 0 has a gradient of its scale and weights") {
  const NormCase c{{{4, 4, 3}, 2, 3, 3}};
  NormLayer layer(c, FormatKind::kTrits, 5);
  encode_all(layer.scale().storage(), std::vector<float>{0.5f, 0.0f, -0.25f});
  Tape tape;
  std::vector<float> pixels = whole_images(c.c);
  const ImageVar x = images_of(tape, c.c, pixels);
  const Var y = layer.run_floats(tape, x);
  const std::vector<float> dy = numbers(y.value.size(), 4);
  const std::vector<float> scales(x.images.scales, x.images.scales + c.c.images);
  const DirectNorm direct(layer, numbers_of(x.images), scales, dy);
  const Var loss = loss_with_gradient(tape, y, dy);
  tape.backward(loss, [&](Parameter& p) {
    if (&p == &layer.weight()) {
      for (std::int64_t i = 0; i < c.c.inputs(); ++i) CHECK(p.grad.row(1)[i] == 0.0f);
    }
    if (&p != &layer.scale()) return;
    // It is the sum of trits times dW, which is rounded to float once more.
    const std::vector<double> trits = decoded(layer.weight().storage());
    double expected = 0.0, bound = 0.0;
    for (std::int64_t i = 0; i < c.c.inputs(); ++i) {
      const auto at = static_cast<std::size_t>(c.c.inputs() + i);
      expected += trits[at] * direct.dw[at];
      bound += std::abs(trits[at]) * direct.dw_error[at];
    }
    bound += 0x1p-24 * std::abs(expected);
    CHECK(std::abs(double{p.grad.data[1]} - expected) <= bound);
    CHECK(direct.dscale[1] != 0.0);
  });
}

TEST_CASE("conv_norm: what does not fit is refused with the shapes") {
  const NormCase c{{{2, 2, 2}, 2, 3, 3}};
  NormLayer layer(c, FormatKind::kTrits, 5);
  Tape tape;
  std::vector<float> pixels = whole_images(c.c);
  const ImageVar x = images_of(tape, c.c, pixels);
  CHECK(refusal([&] {
          conv_norm(tape, x, {5}, layer.weight(), &layer.scale(), layer.norm(), Pool::kNo);
        }) ==
        "conv_norm: 'w' has shape [3 x 18] but windows of 5 x 5 pixels of 2 channels have 50 "
        "numbers");
  CHECK(
      refusal([&] { conv_norm(tape, x, {3}, layer.weight(), nullptr, layer.norm(), Pool::kNo); }) ==
      "conv_norm: 'w' is not multiplied in integers with one scale a row, or has more than 3683 "
      "outputs; use conv2d");
  CHECK(refusal([&] {
          quantize_images(tape, {pixels.data(), {2, 7}}, c.c.image, {3});
        }) ==
        "quantize_images: x has shape [2 x 7] but images of 2 x 2 pixels of 2 channels have 8 "
        "numbers");
}

TEST_CASE("conv_norm: it takes as many outputs as a window's sum of dy holds, and no more") {
  for (const std::int64_t size : {1, 3, 5}) {
    const std::int64_t most = kLongestFineSum / (size * size);
    for (const std::int64_t outputs : {most, most + 1}) {
      NormLayer layer({{{1, 1, 1}, 1, size, outputs}}, FormatKind::kTrits, 5);
      CHECK(goes_in_images(layer.weight(), &layer.scale(), Compute::kInt8, {size}) ==
            (outputs == most));
    }
  }
}

}  // namespace tritgrad::test::test_conv_norm
