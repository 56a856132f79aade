// Convolution against its definition: exact in whole numbers, within derived bounds elsewhere, in
// floats and in int8; the same bits on every instruction set and for every number of threads.
#include <algorithm>
#include <cmath>

#include "engine/kernels/kernels.h"
#include "engine/memory/parallel.h"
#include "ops/conv2d.h"
#include "tests/support/convolved.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_conv2d {
namespace {

void check_exact(const std::vector<float>& actual, const std::vector<double>& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    REQUIRE(std::abs(expected[i]) < 0x1p24);  // halves and whole numbers, exact in fp32
    REQUIRE(double{actual[i]} == expected[i]);
  }
}

}  // namespace

void for_each_conv2d_case(const VisitOpCase& visit) {
  for (const Convolved& c :
       {Convolved{{3, 4, 2}, 2, 3, 3}, Convolved{{2, 2, 1}, 3, 3, 2}, Convolved{{1, 1, 3}, 4, 3, 2},
        Convolved{{2, 3, 3}, 2, 3, 2, 9}, Convolved{{5, 4, 2}, 2, 3, 3, 0, 2},
        Convolved{{4, 3, 1}, 2, 1, 2, 0, 3}}) {
    for (FormatKind kind : {FormatKind::kFp32, FormatKind::kTernary, FormatKind::kTernaryMaster}) {
      Layer layer(c, kind, false);
      const Convolved shape = c;
      const std::int64_t x_size = c.images * c.image.size(), w_size = c.outputs * c.inputs();
      OpCase op{
          "conv2d",
          {&layer.weight()},
          [&](Tape& t, const Var& x) {
            return conv2d(t, x, shape.image, {shape.size, shape.stride}, layer.weight(),
                          layer.scale());
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
      op.x_shape = {c.x_rows(), c.image.channels};
      visit(op);
    }
  }
}

TEST_CASE("conv2d: whole numbers are convolved exactly, in floats and in integers") {
  for (const Convolved& c : kConvolved) {
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
  for (const Convolved& c : kConvolved) {
    for (FormatKind kind :
         {FormatKind::kFp32, FormatKind::kBf16, FormatKind::kTernary, FormatKind::kTernaryMaster,
          FormatKind::kLatent6, FormatKind::kLatent5, FormatKind::kLatent4, FormatKind::kShared8,
          FormatKind::kFp8, FormatKind::kInt8, FormatKind::kInt4, FormatKind::kSplit24,
          FormatKind::kSplit32}) {
      CAPTURE(format_name(kind));
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
              const std::vector<double>& magnitudes, std::int64_t n,
              bool scaled) { check_rounded(layer, actual, expected, magnitudes, n + 8, scaled); };
      check_close(products.y, exact.y, magnitude.y, c.inputs(), false);
      check_close(products.dx, exact.dx, magnitude.dx, c.outputs + c.size * c.size, false);
      check_close(products.dw, exact.dw, magnitude.dw, c.rows(), true);
    }
  }
}

TEST_CASE("conv2d: the same bits on every instruction set and for any number of threads") {
  const std::string before = kernels().name;
  for (const Convolved& c : kConvolved) {
    Layer layer(c, FormatKind::kLatent8, false);
    Layer dense(c, FormatKind::kFp32, false);
    set_thread_count(1);
    const Products floats = dense.run(Compute::kFp32);
    use_kernels("reference");
    const Products expected = layer.run(Compute::kInt8);
    for (const KernelTables* table : supported_kernels()) {
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
  CHECK(refusal([&] {
          conv2d(tape, x, {2, 3, 2}, {3, 0}, weight);
        }) == "conv2d: a stride of 0 pixels; it must be a positive number");
  CHECK(convolved({5, 6, 2}, {3, 2}, 7) == ImageShape{3, 3, 7});
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

namespace {

// The bounds of what rounding to int8 may change in the gradients of one layer.
struct GradientBounds {
  std::vector<double> dx, dw;

  GradientBounds(const Convolved& c, Layer& layer) {
    const std::vector<double> x = layer.x(), dy = layer.dy(), w = layer.multipliers();
    const auto column = [](std::int64_t count) {
      return std::vector<double>(static_cast<std::size_t>(count));
    };
    // Of the images, and of the scales, and of the images and of the columns of d; where scales are
    // those of groups, rows of d are rounded one by one.
    std::vector<double> image = column(c.images), scale = column(c.outputs);
    std::vector<double> row = column(c.rows()), output = column(c.outputs);
    const auto raise = [](double& largest, double value) {
      largest = std::max(largest, std::abs(value));
    };
    const auto image_size = static_cast<std::size_t>(c.image.size());
    const auto inputs = static_cast<std::size_t>(c.inputs());
    const auto outputs = static_cast<std::size_t>(c.outputs);
    const auto pixels = static_cast<std::size_t>(c.pixels());
    for (std::size_t i = 0; i < x.size(); ++i) raise(image[i / image_size], x[i]);
    for (std::size_t i = 0; i < w.size(); ++i) raise(scale[i / inputs], layer.scale_at(i));
    for (std::size_t i = 0; i < dy.size(); ++i) {
      const std::size_t first = c.group == 0 ? i / outputs / pixels * pixels : i / outputs;
      raise(row[first], dy[i] * scale[i % outputs]);
      raise(output[i % outputs], dy[i] * image[i / outputs / pixels] / 127.0);
    }

    std::vector<double> trits = w, row_error = dy, output_error = dy, size = dy;
    for (std::size_t i = 0; i < w.size(); ++i) trits[i] = std::abs(w[i]) / layer.scale_at(i);
    for (std::size_t i = 0; i < dy.size(); ++i) {
      const std::size_t first = c.group == 0 ? i / outputs / pixels * pixels : i / outputs;
      row_error[i] = row[first] / 254.0;
      output_error[i] = output[i % outputs] / 254.0;
      size[i] = std::abs(dy[i]);
    }
    std::vector<double> x_error = x, codes = x;
    for (std::size_t i = 0; i < x.size(); ++i) {
      x_error[i] = image[i / image_size] / 254.0;
      codes[i] = std::abs(x[i]) / image[i / image_size] * 127.0 + 0.5;
    }
    dx = Direct<double>(c, x, trits, row_error).dx;
    dw = Direct<double>(c, x_error, trits, size).dw;
    const std::vector<double> of_codes = Direct<double>(c, codes, trits, output_error).dw;
    for (std::size_t i = 0; i < dw.size(); ++i) dw[i] += of_codes[i];
  }
};

}  // namespace

TEST_CASE("conv2d: any numbers in integers, within half a unit of the image") {
  for (const Convolved& c : kConvolved) {
    Layer layer(c, FormatKind::kTernary, false);
    const Products integer = layer.run(Compute::kInt8);
    std::vector<double> w = layer.multipliers();
    const std::vector<double> x = layer.x();
    const Direct<double> exact(c, x, w, {});
    for (std::int64_t row = 0; row < c.rows(); ++row) {
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

// dx: dy E is rounded by half a unit, 1/254 of the largest of its image, and multiplies trits.
// dW: dy times the unit of the image is rounded by 1/254 of the largest of its output, and
// multiplies codes, which are off by 1/254 of the largest number of the image.
TEST_CASE("conv2d: any numbers in integers, gradients within half a unit of what is rounded") {
  for (const Convolved& c : kConvolved) {
    CAPTURE(c.image.height);
    CAPTURE(c.outputs);
    Layer layer(c, FormatKind::kTernary, false);
    const Products integer = layer.run(Compute::kInt8);
    const Direct<double> exact(c, layer.x(), layer.multipliers(), layer.dy());
    const GradientBounds bounds(c, layer);
    // Sums of integers are exact; the few products of floats around them are off by 2^-20 at most.
    const auto check_near = [](float actual, double expected, double bound) {
      REQUIRE(std::abs(double{actual} - expected) <= bound * (1.0 + 0x1p-20) + 0x1p-20);
    };
    REQUIRE(integer.dx.size() == exact.dx.size());
    for (std::size_t i = 0; i < integer.dx.size(); ++i) {
      check_near(integer.dx[i], exact.dx[i], bounds.dx[i]);
    }
    REQUIRE(integer.dw.size() == exact.dw.size());
    for (std::size_t i = 0; i < integer.dw.size(); ++i) {
      const double scale = layer.scale_at(i);
      check_near(integer.dw[i], scale * exact.dw[i], scale * bounds.dw[i]);
    }
  }
}

}  // namespace tritgrad::test::test_conv2d
