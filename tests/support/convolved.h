// Convolutions by their definition, and layers with operands to compare with it.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ops/conv2d.h"
#include "tests/support/given_gradient.h"
#include "tests/support/op_cases.h"

namespace tritgrad::test {

// Images, and the windows and outputs of a convolution of them.
struct Convolved {
  ImageShape image;
  std::int64_t images, size, outputs;
  int group = 0;
  std::int64_t stride = 1;

  std::int64_t width() const { return (image.width + stride - 1) / stride; }
  // Of what comes out; of x there are more with a stride.
  std::int64_t pixels() const { return (image.height + stride - 1) / stride * width(); }
  std::int64_t x_rows() const { return images * image.pixels(); }
  std::int64_t rows() const { return images * pixels(); }
  std::int64_t inputs() const { return size * size * image.channels; }
  std::int64_t groups() const { return group == 0 ? 1 : (inputs() + group - 1) / group; }

  // body(row of y, column of the patch, index in x) for all numbers in patches that lie inside.
  template <typename Body>
  void for_each_tap(const Body& body) const {
    for (std::int64_t row = 0; row < rows(); ++row) {
      const std::int64_t n = row / pixels();
      const std::int64_t line = row % pixels() / width() * stride;
      const std::int64_t column = row % width() * stride;
      for (std::int64_t k = 0; k < inputs(); ++k) {
        const std::int64_t from_line = line + k / image.channels / size - size / 2;
        const std::int64_t from_column = column + k / image.channels % size - size / 2;
        if (from_line < 0 || from_line >= image.height) continue;
        if (from_column < 0 || from_column >= image.width) continue;
        const std::int64_t pixel = (n * image.height + from_line) * image.width + from_column;
        body(row, k, pixel * image.channels + k % image.channels);
      }
    }
  }
};

// y, dx, dW of x with weights w [outputs x inputs], by the definition.
template <typename T>
struct Direct {
  std::vector<T> y, dx, dw;

  Direct(const Convolved& c, const std::vector<T>& x, const std::vector<T>& w,
         const std::vector<T>& dy)
      : y(static_cast<std::size_t>(c.rows() * c.outputs)), dx(x.size()), dw(w.size()) {
    c.for_each_tap([&](std::int64_t row, std::int64_t k, std::int64_t from) {
      for (std::int64_t o = 0; o < c.outputs; ++o) {
        const auto out = static_cast<std::size_t>(row * c.outputs + o);
        const auto weight = static_cast<std::size_t>(o * c.inputs() + k);
        const auto in = static_cast<std::size_t>(from);
        y[out] += w[weight] * x[in];
        if (dy.empty()) continue;
        dx[in] += w[weight] * dy[out];
        dw[weight] += dy[out] * x[in];
      }
    });
  }
};

struct Products {
  std::vector<float> y, dx, dw, dscale;
  friend bool operator==(const Products&, const Products&) = default;
};

inline FormatSpec weight_format(const Convolved& c, FormatKind kind) {
  FormatSpec format = spec_of(kind);
  format.group = c.group;
  return format;
}

// A convolution with its operands. `whole`: x and dy are whole numbers; each image and each row and
// column of dy have 127 as the largest magnitude and all scales are 1/2, so that int8 is exact.
class Layer {
 public:
  Layer(const Convolved& c, FormatKind kind, bool whole)
      : case_(c),
        weight_(make_parameter("w", Role::kWeight, {c.outputs, c.inputs()}, weight_format(c, kind),
                               1.5f)),
        scale_(make_parameter("s", Role::kScale, {c.outputs, c.groups()},
                              spec_of(FormatKind::kFp32), 1.0f, 2)),
        x_(numbers(c.images * c.image.size(), 3)),
        dy_(numbers(c.rows() * c.outputs, 4)) {
    std::vector<float> scales = numbers(c.outputs * c.groups(), 6);
    for (float& s : scales) s = whole ? 0.5f : std::abs(s) + 0.01f;
    encode_all(scale_.storage(), scales);
    if (!whole) {
      give_sizes();
      return;
    }
    for (std::vector<float>* values : {&x_, &dy_}) {
      for (float& v : *values) v = std::nearbyint(v * 126.0f);
    }
    for (std::int64_t i = 0; i < c.images; ++i) {
      x_[static_cast<std::size_t>(i * c.image.size() + i % c.image.size())] = 127.0f;
    }
    for (std::int64_t r = 0; r < c.rows(); ++r) {
      dy_[static_cast<std::size_t>(r * c.outputs + r % c.outputs)] = r % 3 == 0 ? 127.0f : -127.0f;
    }
  }

  // Images and rows of dy differ in size, as do their scales in integers.
  void give_sizes() {
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const std::int64_t image = static_cast<std::int64_t>(i) / case_.image.size();
      x_[i] *= static_cast<float>(1 + image);
    }
    for (std::size_t i = 0; i < dy_.size(); ++i) {
      const std::int64_t row = static_cast<std::int64_t>(i) / case_.outputs;
      dy_[i] *= static_cast<float>(1 + row % 5);
    }
  }

  Parameter& weight() { return weight_; }
  Parameter* scale() { return weight_.spec().format.traits().holds_trits ? &scale_ : nullptr; }
  std::vector<double> x() const { return {x_.begin(), x_.end()}; }
  std::vector<double> dy() const { return {dy_.begin(), dy_.end()}; }
  void set_x(std::size_t i, float value) { x_[i] = value; }
  void set_dy(std::size_t i, float value) { dy_[i] = value; }
  // Returns the numbers that multiply: values times scales.
  std::vector<double> multipliers() {
    std::vector<double> w = decoded(weight_.storage());
    if (scale() == nullptr) return w;
    for (std::size_t i = 0; i < w.size(); ++i) w[i] *= scale_at(i);
    return w;
  }
  double scale_at(std::size_t weight) {
    const auto index = static_cast<std::int64_t>(weight);
    const std::int64_t group = case_.group == 0 ? 0 : index % case_.inputs() / case_.group;
    const std::int64_t at = index / case_.inputs() * case_.groups() + group;
    return double{scale_.storage().fp32_data()[at]};
  }

  Products run(Compute compute, bool wants_dx = true) {
    Tape tape;
    const Shape shape{case_.x_rows(), case_.image.channels};
    const Var x = wants_dx ? tape.variable(shape) : tape.constant({x_.data(), shape});
    if (wants_dx) std::copy(x_.begin(), x_.end(), x.value.data);
    const Var y =
        conv2d(tape, x, case_.image, {case_.size, case_.stride}, weight_, scale(), compute);
    const Var loss = loss_with_gradient(tape, y, dy_);
    Products products;
    products.y.assign(y.value.values().begin(), y.value.values().end());
    tape.backward(loss, [&](Parameter& p) {
      std::vector<float>& to = &p == &weight_ ? products.dw : products.dscale;
      to.assign(p.grad.values().begin(), p.grad.values().end());
    });
    if (wants_dx) products.dx.assign(x.grad().values().begin(), x.grad().values().end());
    return products;
  }

 private:
  Convolved case_;
  Parameter weight_, scale_;
  std::vector<float> x_, dy_;
};

// Odd sizes, one channel, images of one pixel, one line and one column, windows larger than the
// image, one group and several, several parts (1600 patches of 72 numbers, nine images to a part);
// strides, also one that is larger than the window, so that pixels have no part in anything.
inline const std::vector<Convolved> kConvolved = {
    {{5, 7, 1}, 3, 3, 4},          {{1, 1, 6}, 9, 3, 5},       {{1, 9, 2}, 2, 3, 3},
    {{8, 1, 3}, 2, 5, 2},          {{2, 3, 4}, 3, 7, 6},       {{4, 4, 5}, 2, 1, 3},
    {{6, 5, 8}, 4, 3, 7, 32},      {{40, 40, 8}, 11, 3, 3},    {{9, 8, 70}, 2, 3, 66},
    {{7, 6, 3}, 3, 3, 5, 0, 2},    {{1, 1, 4}, 5, 3, 3, 0, 2}, {{5, 8, 40}, 2, 3, 20, 32, 2},
    {{64, 63, 8}, 12, 3, 3, 0, 2}, {{7, 9, 2}, 2, 1, 3, 0, 3}};

// Requires numbers within gamma_n, n roundings one after the other, of what is expected, times the
// layer's scales where they are `scaled`. `magnitudes` are the same sums of magnitudes.
inline void check_rounded(Layer& layer, const std::vector<float>& actual,
                          const std::vector<double>& expected,
                          const std::vector<double>& magnitudes, std::int64_t n, bool scaled) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double s = scaled && layer.scale() != nullptr ? layer.scale_at(i) : 1.0;
    REQUIRE(std::abs(double{actual[i]} - s * expected[i]) <=
            static_cast<double>(n) * 0x1.01p-24 * s * magnitudes[i]);
  }
}

}  // namespace tritgrad::test
