// Convolution in int8: how far it may be from the definition.
#include "tests/support/convolved.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_conv2d_integers {
namespace {

// What rounding to int8 may change in the gradients of one layer.
struct GradientBounds {
  std::vector<double> dx, dw;

  GradientBounds(const Convolved& c, Layer& layer) {
    const std::vector<double> x = layer.x(), dy = layer.dy(), w = layer.multipliers();
    const auto column = [](std::int64_t count) {
      return std::vector<double>(static_cast<std::size_t>(count));
    };
    // Of the images, and of the scales, of the rows and of the columns of d.
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
      raise(row[i / outputs], dy[i] * scale[i % outputs]);
      raise(output[i % outputs], dy[i] * image[i / outputs / pixels] / 127.0);
    }

    std::vector<double> trits = w, row_error = dy, output_error = dy, size = dy;
    for (std::size_t i = 0; i < w.size(); ++i) trits[i] = std::abs(w[i]) / layer.scale_at(i);
    for (std::size_t i = 0; i < dy.size(); ++i) {
      row_error[i] = row[i / outputs] / 254.0;
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

// dx: dy E is rounded by half a unit, 1/254 of the largest of its row, and multiplies trits.
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

}  // namespace tritgrad::test::test_conv2d_integers
