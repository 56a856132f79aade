// Convolution against its definition: exact in whole numbers, within derived bounds elsewhere, the
// same bits on every instruction set and for every number of threads.
#include <algorithm>
#include <cmath>

#include "engine/kernel_table.h"
#include "engine/parallel.h"
#include "ops/conv2d.h"
#include "tests/op_cases.h"
#include "tests/support_files.h"

namespace tritgrad::test {
namespace {

// Images, and the windows and outputs of a convolution of them.
struct Convolved {
  ImageShape image;
  std::int64_t images, size, outputs;
  int group = 0;

  std::int64_t pixels() const { return image.height * image.width; }
  std::int64_t rows() const { return images * pixels(); }
  std::int64_t inputs() const { return size * size * image.channels; }
  std::int64_t groups() const { return group == 0 ? 1 : (inputs() + group - 1) / group; }

  // body(row of y, column of the patch, index in x) for all numbers in patches that lie inside.
  template <typename Body>
  void for_each_tap(const Body& body) const {
    for (std::int64_t row = 0; row < rows(); ++row) {
      const std::int64_t n = row / pixels();
      const std::int64_t line = row % pixels() / image.width, column = row % image.width;
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

FormatSpec weight_format(const Convolved& c, FormatKind kind) {
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
    if (!whole) return;
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

  Parameter& weight() { return weight_; }
  Parameter* scale() { return weight_.spec().format.wants_scale() ? &scale_ : nullptr; }
  std::vector<double> x() const { return {x_.begin(), x_.end()}; }
  std::vector<double> dy() const { return {dy_.begin(), dy_.end()}; }
  // What multiplies: values times scales.
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
    const Shape shape{case_.rows(), case_.image.channels};
    const Var x = wants_dx ? tape.variable(shape) : tape.constant({x_.data(), shape});
    if (wants_dx) std::copy(x_.begin(), x_.end(), x.value.data);
    const Var y = conv2d(tape, x, case_.image, {case_.size}, weight_, scale(), compute);
    const Var loss = tape.variable({1});
    tape.record(loss, {},
                [this, &tape, y] { std::copy(dy_.begin(), dy_.end(), tape.target(y).grad.data); });
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
// image, one group and several, several parts (1600 patches of 72 numbers, nine images to a part).
const std::vector<Convolved> kCases = {
    {{5, 7, 1}, 3, 3, 4},     {{1, 1, 6}, 9, 3, 5},    {{1, 9, 2}, 2, 3, 3},
    {{8, 1, 3}, 2, 5, 2},     {{2, 3, 4}, 3, 7, 6},    {{4, 4, 5}, 2, 1, 3},
    {{6, 5, 8}, 4, 3, 7, 32}, {{40, 40, 8}, 11, 3, 3}, {{9, 8, 70}, 2, 3, 66}};

void check_exact(const std::vector<float>& actual, const std::vector<double>& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    REQUIRE(std::abs(expected[i]) < 0x1p24);  // halves and whole numbers, exact in fp32
    REQUIRE(double{actual[i]} == expected[i]);
  }
}

}  // namespace

void for_each_conv2d_case(const VisitOpCase& visit) {
  for (const Convolved& c : {Convolved{{3, 4, 2}, 2, 3, 3}, Convolved{{2, 2, 1}, 3, 3, 2},
                             Convolved{{1, 1, 3}, 4, 3, 2}, Convolved{{2, 3, 3}, 2, 3, 2, 9}}) {
    for (FormatKind kind : {FormatKind::kFp32, FormatKind::kTernary, FormatKind::kTernaryMaster}) {
      Layer layer(c, kind, false);
      const Convolved shape = c;
      const std::int64_t x_size = c.images * c.image.size(), w_size = c.outputs * c.inputs();
      OpCase op{
          "conv2d",
          {&layer.weight()},
          [&](Tape& t, const Var& x) {
            return conv2d(t, x, shape.image, {shape.size}, layer.weight(), layer.scale());
          },
          [=, scaled = layer.scale() != nullptr](const Values& v) {
            const auto begin = v.begin();
            Values w(begin + x_size, begin + x_size + w_size);
            for (std::int64_t i = 0; scaled && i < w_size; ++i) {
              const std::int64_t group = shape.group == 0 ? 0 : i % shape.inputs() / shape.group;
              const std::int64_t at = i / shape.inputs() * shape.groups() + group;
              w[static_cast<std::size_t>(i)] *= v[static_cast<std::size_t>(x_size + w_size + at)];
            }
            return asymmetric_scalar(
                Direct<Complex>(shape, Values(begin, begin + x_size), w, {}).y);
          }};
      if (layer.scale() != nullptr) op.parameters.push_back(layer.scale());
      op.x_shape = {c.rows(), c.image.channels};
      visit(op);
    }
  }
}

TEST_CASE("conv2d: whole numbers are convolved exactly, in floats and in integers") {
  for (const Convolved& c : kCases) {
    CAPTURE(c.image.height);
    CAPTURE(c.image.width);
    CAPTURE(c.image.channels);
    for (FormatKind kind : {FormatKind::kLatent8, FormatKind::kTrits}) {
      Layer layer(c, kind, true);
      const std::vector<double> w = layer.multipliers();
      Direct<double> direct(c, layer.x(), w, layer.dy());
      std::vector<double> dscale(static_cast<std::size_t>(c.outputs * c.groups()));
      double magnitude = 0.0;  // of the largest sum on the way to a d scale
      for (std::size_t i = 0; i < w.size(); ++i) {
        const auto index = static_cast<std::int64_t>(i);
        const std::int64_t group = c.group == 0 ? 0 : index % c.inputs() / c.group;
        dscale[static_cast<std::size_t>(index / c.inputs() * c.groups() + group)] +=
            w[i] / layer.scale_at(i) * direct.dw[i];
        magnitude = std::max(magnitude, std::abs(direct.dw[i]) * static_cast<double>(c.inputs()));
        direct.dw[i] *= layer.scale_at(i);
      }
      for (Compute compute : {Compute::kInt8, Compute::kFp32}) {
        const Products products = layer.run(compute);
        check_exact(products.y, direct.y);
        check_exact(products.dx, direct.dx);
        check_exact(products.dw, direct.dw);
        REQUIRE(products.dscale.size() == dscale.size());
        for (std::size_t i = 0; i < dscale.size(); ++i) {
          // Each of at most inputs + 2 sums (trits times dW, parts) is rounded once.
          const double bound = static_cast<double>(c.inputs() + 2) * 0x1p-24 * magnitude;
          CHECK(std::abs(double{products.dscale[i]} - dscale[i]) <= bound);
        }
        // The same without anybody who wants dx.
        const Products data = layer.run(compute, false);
        CHECK(data.dw == products.dw);
        CHECK(data.y == products.y);
      }
    }
  }
}

TEST_CASE("conv2d: any numbers in floats, within the rounding of their sums") {
  for (const Convolved& c : kCases) {
    for (FormatKind kind : {FormatKind::kFp32, FormatKind::kBf16, FormatKind::kTernary}) {
      Layer layer(c, kind, false);
      const Products products = layer.run(Compute::kFp32);
      const std::vector<double> w = layer.multipliers();
      const auto absolute = [](std::vector<double> v) {
        for (double& x : v) x = std::abs(x);
        return v;
      };
      const Direct<double> exact(c, layer.x(), w, layer.dy());
      const Direct<double> magnitude(c, absolute(layer.x()), absolute(w), absolute(layer.dy()));
      // n additions and products, the scale's and those of parts and patches: gamma_(n + 8).
      const auto check_close =
          [&](const std::vector<float>& actual, const std::vector<double>& expected,
              const std::vector<double>& magnitudes, std::int64_t n, bool scaled) {
            REQUIRE(actual.size() == expected.size());
            for (std::size_t i = 0; i < actual.size(); ++i) {
              const double s = scaled && layer.scale() != nullptr ? layer.scale_at(i) : 1.0;
              REQUIRE(std::abs(double{actual[i]} - s * expected[i]) <=
                      static_cast<double>(n + 8) * 0x1.01p-24 * s * magnitudes[i]);
            }
          };
      check_close(products.y, exact.y, magnitude.y, c.inputs(), false);
      check_close(products.dx, exact.dx, magnitude.dx, c.outputs + c.size * c.size, false);
      check_close(products.dw, exact.dw, magnitude.dw, c.rows(), true);
    }
  }
}

TEST_CASE("conv2d: any numbers in integers, within half a unit of the image") {
  for (const Convolved& c : kCases) {
    Layer layer(c, FormatKind::kTernary, false);
    const Products integer = layer.run(Compute::kInt8);
    std::vector<double> w = layer.multipliers();
    const Direct<double> exact(c, layer.x(), w, {});
    for (std::int64_t row = 0; row < c.rows(); ++row) {
      const std::vector<double> x = layer.x();
      const auto first = x.begin() + row / c.pixels() * c.image.size();
      double largest = 0.0;
      for (auto i = first; i != first + c.image.size(); ++i) {
        largest = std::max(largest, std::abs(*i));
      }
      for (std::int64_t o = 0; o < c.outputs; ++o) {
        double weights = 0.0;
        for (std::int64_t k = 0; k < c.inputs(); ++k) {
          weights += std::abs(w[static_cast<std::size_t>(o * c.inputs() + k)]);
        }
        const auto i = static_cast<std::size_t>(row * c.outputs + o);
        // The rest: a few roundings of each group's product.
        REQUIRE(std::abs(double{integer.y[i]} - exact.y[i]) <=
                weights * largest * (1.0 / 254.0 + 0x1p-20));
      }
      if (c.rows() > 2000) row += 500;
    }
  }
}

TEST_CASE("conv2d: the same bits on every instruction set and for any number of threads") {
  const std::string before = kernels().name;
  for (const Convolved& c : kCases) {
    Layer layer(c, FormatKind::kLatent8, false);
    Layer dense(c, FormatKind::kFp32, false);
    set_thread_count(1);
    const Products floats = dense.run(Compute::kFp32);
    use_kernels("reference");
    const Products expected = layer.run(Compute::kInt8);
    for (const KernelTable* table : supported_kernels()) {
      use_kernels(table->name);
      for (int threads : {1, 3}) {
        set_thread_count(threads);
        CAPTURE(table->name);
        CHECK(layer.run(Compute::kInt8) == expected);
      }
    }
    use_kernels(before.c_str());
    CHECK(dense.run(Compute::kFp32) == floats);
  }
  set_thread_count(0);
}

TEST_CASE("conv2d: patches are in memory for a few images at a time") {
  const Convolved c{{16, 16, 16}, 96, 3, 16};
  const std::int64_t activations = c.rows() * 16 * 4;
  const std::int64_t patches = 9 * activations;
  for (Compute compute : {Compute::kInt8, Compute::kFp32}) {
    Layer layer(c, FormatKind::kTernary, false);
    const std::int64_t before = ledger::live_total();
    ledger::reset_peak();
    layer.run(compute);
    // x, y and their gradients, codes; and, of 28 images, patches and the same of dx.
    CHECK(ledger::peak_total() - before < 6 * activations + patches * 2 / 3);
  }
}

TEST_CASE("conv2d: shapes that do not fit are refused with the shapes") {
  Parameter weight = make_parameter("w", Role::kWeight, {5, 18}, spec_of(FormatKind::kFp32));
  Tape tape;
  const Var x = tape.variable({12, 2});
  const auto message = [&](const ImageShape& image, std::int64_t size) {
    return refusal([&] { conv2d(tape, x, image, {size}, weight); });
  };
  CHECK(message({2, 3, 2}, 3).empty());
  CHECK(message({2, 3, 2}, 2) == "conv2d: windows of 2 x 2 pixels; the size must be odd");
  CHECK(message({2, 5, 2}, 3) ==
        "conv2d: x has shape [12 x 2], which is no number of images of 2 x 5 pixels of 2 channels");
  CHECK(message({2, 3, 2}, 5) ==
        "conv2d: windows of 5 x 5 pixels of 2 channels have 50 numbers but 'w' has shape [5 x 18]; "
        "the last axis must have as many");
  Parameter trits = make_parameter("t", Role::kWeight, {1, 1}, spec_of(FormatKind::kTrits));
  Parameter scale = make_parameter("s", Role::kScale, {1, 1}, spec_of(FormatKind::kFp32));
  const Var large = tape.variable({65537, 1});
  CHECK(refusal([&] {
          conv2d(tape, large, {65537, 1, 1}, {1}, trits, &scale, Compute::kInt8);
        }) == "conv2d: images have 65537 x 1 pixels; in int8 at most 65536; use --compute fp32");
}

}  // namespace tritgrad::test
