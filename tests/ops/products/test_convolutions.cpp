// Convolutions of int8 codes and what goes back through them, part by part: exactly what the
// definition gives in 64-bit integers, on every instruction set and for any number of threads.
#include <algorithm>
#include <cmath>
#include <string>

#include "engine/kernels/kernels.h"
#include "engine/memory/parallel.h"
#include "ops/products/convolution_gradient.h"
#include "ops/products/fine_convolution.h"
#include "ops/products/integer_convolution.h"
#include "tests/support/convolved.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_convolutions {
namespace {

using Integers = std::vector<std::int64_t>;

// Images of one pixel, one line, one column; lines that are a multiple of four, or longer than a
// stretch; windows larger than the image; numbers of channels and outputs around those of a panel;
// more images than are packed together.
const std::vector<Convolved> kCases = {
    {{1, 1, 1}, 3, 1, 1},    {{1, 1, 3}, 2, 3, 64},   {{1, 1, 2}, 1030, 1, 3},
    {{1, 9, 2}, 2, 5, 3},    {{8, 1, 65}, 2, 3, 2},   {{5, 7, 1}, 3, 3, 130},
    {{5, 7, 3}, 2, 5, 1},    {{5, 7, 63}, 2, 3, 65},  {{5, 7, 64}, 3, 1, 63},
    {{5, 7, 130}, 2, 3, 64}, {{4, 5, 130}, 3, 1, 65}, {{5, 8, 65}, 2, 3, 66},
    {{1, 70, 2}, 2, 3, 65},  {{70, 1, 1}, 1, 5, 2},   {{6, 6, 2}, 2, 5, 130},
};

// Codes that differ, or the largest that there are, times trits of 1.
enum class Fill { kScattered, kLargest };

Integers codes(std::int64_t n, Fill fill, std::uint32_t salt) {
  Integers all(static_cast<std::size_t>(n), 127);
  if (fill == Fill::kLargest) return all;
  const std::vector<float> sizes = numbers(n, salt);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::lrint(sizes[i] * 127.0f);
  return all;
}

// The operands of a convolution and of its backward pass.
class Operands {
 public:
  Convolved c;
  bool rectified = false;  // what x says of itself
  Integers x, high, low;   // codes of x; both of dy

  Operands(const Convolved& of, Fill fill)
      : c(of),
        x(codes(c.images * c.image.size(), fill, 3)),
        high(codes(c.rows() * c.outputs, fill, 4)),
        low(codes(c.rows() * c.outputs, fill, 5)),
        weight_(make_parameter(
            "w", Role::kWeight, {c.outputs, c.inputs()},
            spec_of(c.outputs % 2 == 0 ? FormatKind::kLatent8 : FormatKind::kTrits), 1.5f)),
        scale_(make_parameter("s", Role::kScale, {c.outputs, 1}, spec_of(FormatKind::kFp32))) {
    if (fill == Fill::kLargest) {
      encode_all(weight_.storage(), std::vector<float>(static_cast<std::size_t>(weights()), 1.0f));
    }
    // Powers of two, and of several outputs 0 for the last.
    std::vector<float> scales(static_cast<std::size_t>(c.outputs));
    for (std::size_t o = 0; o < scales.size(); ++o) scales[o] = o % 2 == 0 ? 2.0f : -0.25f;
    if (c.outputs > 1) scales.back() = 0.0f;
    encode_all(scale_.storage(), scales);
  }

  Parameter& weight() { return weight_; }
  Parameter& scale() { return scale_; }
  LinearOperands linear() { return linear_operands("test", weight_, &scale_); }
  std::int64_t weights() const { return c.outputs * c.inputs(); }
  ImageShape z_shape() const { return {c.image.height, c.image.width, c.outputs}; }
  Integers trits() const {
    const std::vector<double> values = decoded(weight_.storage());
    return {values.begin(), values.end()};
  }
  Direct<std::int64_t> direct(const Integers& dy) const { return {c, x, trits(), dy}; }

 private:
  Parameter weight_, scale_;
};

// What may be read behind the images is filled, as it must not matter.
BorderedImages images_of(Tape& tape, const ImageShape& image, const Operands& operands,
                         const Integers& from) {
  const Convolved& c = operands.c;
  const BorderedImages images = allocate_images(tape, image, c.images, c.size / 2, /*keep=*/true);
  const std::int64_t line_numbers = image.width * image.channels;
  for (std::int64_t line = 0; line < c.images * image.height; ++line) {
    std::transform(from.begin() + line * line_numbers, from.begin() + (line + 1) * line_numbers,
                   images.line(line / image.height, line % image.height),
                   [](std::int64_t code) { return static_cast<std::int8_t>(code); });
  }
  std::fill_n(images.codes + c.images * images.image_bytes(), kBytesBehindImages, std::int8_t{85});
  return images;
}

template <typename Body>
void on_every_machine(const Body& body) {
  const std::string before = kernels().name;
  for (const KernelTables* table : supported_kernels()) {
    use_kernels(table->name);
    for (int threads : {1, 3}) {
      set_thread_count(threads);
      CAPTURE(table->name);
      CAPTURE(threads);
      body();
    }
  }
  set_thread_count(0);
  use_kernels(before.c_str());
}

// Calls body(operands) for all cases, and for one of the largest codes.
template <typename Body>
void for_each_case(const Body& body) {
  const auto run = [&](const Convolved& c, Fill fill) {
    CAPTURE(c.image.height);
    CAPTURE(c.image.width);
    CAPTURE(c.image.channels);
    CAPTURE(c.size);
    CAPTURE(c.outputs);
    Operands operands(c, fill);
    body(operands);
  };
  for (const Convolved& c : kCases) run(c, Fill::kScattered);
  run({{5, 7, 64}, 2, 3, 65}, Fill::kLargest);
}

// ---- forward

Integers window_sums(const Operands& operands) {
  Tape tape;
  const BorderedImages x = images_of(tape, operands.c.image, operands, operands.x);
  const std::int32_t* sums = sum_windows(tape, x);
  return {sums, sums + x.rows()};
}

// Places that no stretch has met hold what no sum can be.
Integers forward_sums(Operands& operands) {
  Tape tape;
  const BorderedImages x = images_of(tape, operands.c.image, operands, operands.x);
  const WindowPanels panels = pack_windows(tape, operands.linear(), operands.c.size);
  Integers all(static_cast<std::size_t>(x.rows() * panels.outputs), std::int64_t{1} << 40);
  convolve_images(tape, x, panels, [&](const WindowSums& s) {
    const std::int64_t row = (s.image * x.image.height + s.line) * x.image.width + s.column;
    for (std::int64_t i = 0; i < s.pixels * s.n; ++i) {
      const std::int64_t pixel = i / s.n, output = i % s.n;
      all[static_cast<std::size_t>((row + pixel) * panels.outputs + s.first + output)] =
          std::int64_t{s.sums[pixel * kPanelColumns + output]} - s.corrections[pixel];
    }
  });
  return all;
}

// ---- dx

struct Levels {
  std::vector<std::int16_t> levels, least, most;
  std::vector<float> factors;
  friend bool operator==(const Levels&, const Levels&) = default;

  Levels(const ImageShape& image, std::int64_t images)
      : levels(static_cast<std::size_t>(images * image.size())),
        least(static_cast<std::size_t>(images * image.channels), 32767),
        most(least.size(), -32768),
        factors(static_cast<std::size_t>(images)) {}
};

float scale_of_image(std::int64_t image) { return 0.37f / static_cast<float>(1 + image); }

Levels fine_levels(Operands& operands) {
  const Convolved& c = operands.c;
  Tape tape;
  const FineImages dy{images_of(tape, operands.z_shape(), operands, operands.high),
                      images_of(tape, operands.z_shape(), operands, operands.low)};
  for (std::int64_t i = 0; i < c.images; ++i) dy.high.scales[i] = scale_of_image(i);
  Levels all(c.image, c.images);
  convolve_finely(tape, dy, pack_mirrored_windows(tape, operands.linear(), c.size),
                  {c.image, c.images, all.levels.data(), all.factors.data(), all.least.data(),
                   all.most.data()});
  return all;
}

std::int64_t level(std::int64_t sum, int shift) {
  return static_cast<std::int64_t>(std::floor(std::ldexp(static_cast<double>(sum), -shift) + 0.5));
}

// Exact sums, of which each image loses as few bits as leave its largest within 16 bits.
Levels expected_levels(const Operands& operands) {
  const Convolved& c = operands.c;
  Integers dy(operands.high.size());
  for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = kFiner * operands.high[i] + operands.low[i];
  const Integers sums = operands.direct(dy).dx;
  Levels all(c.image, c.images);
  for (std::int64_t image = 0; image < c.images; ++image) {
    const auto first = static_cast<std::size_t>(image * c.image.size());
    const std::size_t last = first + static_cast<std::size_t>(c.image.size());
    std::int64_t largest = 0;
    for (std::size_t i = first; i < last; ++i) largest = std::max(largest, std::abs(sums[i]));
    int shift = 0;
    while (level(largest, shift) > 32767) ++shift;
    all.factors[static_cast<std::size_t>(image)] =
        scale_of_image(image) / static_cast<float>(kFiner) * std::exp2(static_cast<float>(shift));
    for (std::size_t i = first; i < last; ++i) {
      all.levels[i] = static_cast<std::int16_t>(level(sums[i], shift));
      const auto at = static_cast<std::size_t>(image * c.image.channels +
                                               static_cast<std::int64_t>(i) % c.image.channels);
      all.least[at] = std::min(all.least[at], all.levels[i]);
      all.most[at] = std::max(all.most[at], all.levels[i]);
    }
  }
  return all;
}

// ---- dW

struct WeightGradients {
  std::vector<float> dw, dscale;
  friend bool operator==(const WeightGradients&, const WeightGradients&) = default;
};

// Powers of two: the scale of an output's codes of dy, and of an image of x.
float dy_scale(std::int64_t output) { return std::exp2(static_cast<float>(output % 4 - 1)); }
float x_scale(std::int64_t image) { return std::exp2(static_cast<float>(image % 3)); }
double dy_y(std::int64_t output) { return static_cast<double>(output) + 0.5; }

// Makes the codes of dy from floats that are theirs, two lines at a time. One image has the largest
// of an output.
DepthCodes depth_codes(Tape& tape, const Operands& operands) {
  const ImageShape image = operands.z_shape();
  const std::int64_t images = operands.c.images;
  const DepthCodes dy = allocate_depth_codes(tape, image, images);
  std::vector<float> largest(static_cast<std::size_t>(images * image.channels));
  for (std::int64_t o = 0; o < image.channels; ++o) {
    largest[static_cast<std::size_t>(o % images * image.channels + o)] = 127.0f * dy_scale(o);
  }
  dy.set_scales(largest.data());
  std::vector<float> numbers(static_cast<std::size_t>(image.size()));
  for (std::int64_t i = 0; i < images; ++i) {
    for (std::int64_t j = 0; j < image.size(); ++j) {
      const std::int64_t code = operands.high[static_cast<std::size_t>(i * image.size() + j)];
      numbers[static_cast<std::size_t>(j)] =
          static_cast<float>(code) * dy_scale(j % image.channels) / x_scale(i);
    }
    for (std::int64_t line = 0; line < image.height; line += 2) {
      dy.quantize_lines(i, line, std::min<std::int64_t>(2, image.height - line),
                        numbers.data() + line * image.width * image.channels, x_scale(i));
    }
  }
  return dy;
}

// Adds the gradients twice, as two parts of a batch do.
WeightGradients weight_gradients(Operands& operands) {
  WeightGradients all;
  Tape tape;
  BorderedImages x = images_of(tape, operands.c.image, operands, operands.x);
  x.rectified = operands.rectified;
  const DepthCodes dy = depth_codes(tape, operands);
  std::vector<double> sums(static_cast<std::size_t>(operands.c.outputs));
  for (std::size_t o = 0; o < sums.size(); ++o) sums[o] = dy_y(static_cast<std::int64_t>(o));
  const Var loss = tape.variable({1});
  tape.record(loss, {}, {&operands.weight(), &operands.scale()}, [&] {
    for (int part = 0; part < 2; ++part) {
      convolution_backward_weight(tape, operands.linear(), operands.c.size, x, dy, sums.data());
    }
  });
  tape.backward(loss, [&](Parameter& p) {
    (&p == &operands.weight() ? all.dw : all.dscale)
        .assign(p.grad.values().begin(), p.grad.values().end());
  });
  return all;
}

// Sums become floats once, and all that multiplies them is a power of two.
WeightGradients expected_gradients(Operands& operands) {
  const Integers sums = operands.direct(operands.high).dw, trits = operands.trits();
  const std::vector<double> scales = decoded(operands.scale().storage());
  WeightGradients all{std::vector<float>(sums.size()), std::vector<float>(scales.size())};
  std::vector<double> dscale(scales.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::size_t o = i / static_cast<std::size_t>(operands.c.inputs());
    const float row = static_cast<float>(sums[i]) * dy_scale(static_cast<std::int64_t>(o));
    all.dw[i] = 2.0f * static_cast<float>(scales[o]) * row;
    dscale[o] += static_cast<double>(trits[i]) * double{row};
  }
  for (std::size_t o = 0; o < scales.size(); ++o) {
    const double own = dy_y(static_cast<std::int64_t>(o)) / scales[o];
    all.dscale[o] = 2.0f * static_cast<float>(scales[o] == 0.0 ? dscale[o] : own);
  }
  return all;
}

}  // namespace

TEST_CASE("convolutions: forward sums and those of the windows are exact") {
  for_each_case([](Operands& operands) {
    Integers windows(static_cast<std::size_t>(operands.c.rows()));
    operands.c.for_each_tap([&](std::int64_t row, std::int64_t, std::int64_t from) {
      windows[static_cast<std::size_t>(row)] += operands.x[static_cast<std::size_t>(from)];
    });
    const Integers sums = operands.direct({}).y;
    on_every_machine([&] {
      CHECK(window_sums(operands) == windows);
      CHECK(forward_sums(operands) == sums);
    });
  });
}

TEST_CASE("convolutions: dx in 16 bits is rounded from exact sums, with its factors and ranges") {
  for_each_case([](Operands& operands) {
    const Levels expected = expected_levels(operands);
    on_every_machine([&] { CHECK(fine_levels(operands) == expected); });
  });
}

TEST_CASE("convolutions: the longest windows of dx are exact, and longer ones refused") {
  Operands longest({{1, 1, 1}, 1, 1, kLongestFineSum}, Fill::kLargest);
  const Levels expected = expected_levels(longest);
  on_every_machine([&] { CHECK(fine_levels(longest) == expected); });
  Operands longer({{1, 1, 1}, 1, 1, kLongestFineSum + 1}, Fill::kLargest);
  CHECK(refusal([&] { fine_levels(longer); }) ==
        "convolve_finely: windows have 33156 numbers; at most 33155 expected");
}

TEST_CASE("convolutions: dW and d scale are exact, of codes of either sign and of none below 0") {
  for_each_case([](Operands& operands) {
    for (const bool rectified : {false, true}) {
      operands.rectified = rectified;
      if (rectified) {
        for (std::int64_t& code : operands.x) code = std::abs(code);
      }
      const WeightGradients expected = expected_gradients(operands);
      on_every_machine([&] { CHECK(weight_gradients(operands) == expected); });
    }
  });
}

TEST_CASE("convolutions: dW of more pixels than 32 bits hold is a sum of parts") {
  // Three parts of scattered codes, whose sums are so small that floats add them exactly.
  Operands several({{130, 250, 1}, 5, 1, 2}, Fill::kScattered);
  const WeightGradients sums = expected_gradients(several);
  on_every_machine([&] { CHECK(weight_gradients(several) == sums); });
  // Of the largest codes all that fits one part, and an image more. A negative code makes panels of
  // whole bytes, of which half as many fit. Two parts, twice: five roundings of what only grows.
  for (const bool rectified : {false, true}) {
    Operands largest({{1, 259, 1}, rectified ? 515 : 257, 1, 1}, Fill::kLargest);
    largest.rectified = rectified;
    if (!rectified) largest.x[0] = -127;
    const WeightGradients expected = expected_gradients(largest);
    const double bound = 6.0 * 0x1p-24 * double{expected.dw[0]};
    on_every_machine([&] {
      const WeightGradients found = weight_gradients(largest);
      CHECK(std::abs(double{found.dw[0]} - double{expected.dw[0]}) <= bound);
      CHECK(found.dscale == expected.dscale);
    });
  }
}

}  // namespace tritgrad::test::test_convolutions
