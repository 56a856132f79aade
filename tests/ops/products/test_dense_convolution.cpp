// Convolutions in floats by oneDNN and through patches: the rounding bound, what passes on numbers
// that are not finite, and that neither threads nor the place in memory change a bit.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "engine/memory/parallel.h"
#include "ops/products/dense_convolution.h"
#include "ops/products/dense_product.h"
#include "ops/products/float_convolution.h"
#include "tests/support/convolved.h"
#include "tests/support/kernel_inputs.h"

namespace tritgrad::test::test_dense_convolution {
namespace {

constexpr std::array kProducts = {ConvolutionProduct::kForward, ConvolutionProduct::kBackwardInput,
                                  ConvolutionProduct::kBackwardWeight};

// Odd sizes of images and windows, also larger than half of the image; channels around the lanes of
// vectors and more than are packed at a time; strides, with pixels that are left over, also one
// that is larger than the window; batches that make partial sums of dW of one, of several and of
// unequal numbers of images; scales, one of them of groups.
const std::vector<Convolved> kShapes = {
    {{7, 9, 1}, 3, 5, 33},          {{5, 5, 17}, 5, 3, 31},       {{11, 6, 8}, 2, 7, 16},
    {{6, 7, 33}, 18, 3, 15},        {{8, 8, 64}, 3, 3, 130},      {{5, 6, 130}, 2, 3, 9},
    {{28, 1, 130}, 3, 3, 17},       {{1, 30, 16}, 2, 5, 65},      {{13, 11, 20}, 33, 1, 40},
    {{15, 14, 3}, 5, 5, 32, 0, 2},  {{14, 15, 24}, 4, 3, 48, 32}, {{11, 13, 32}, 4, 1, 50, 0, 2},
    {{16, 19, 16}, 3, 3, 32, 0, 3}, {{19, 17, 9}, 7, 1, 99, 0, 3}};

// Calls body(name) as things are, and once more without oneDNN.
template <typename Body>
void with_and_without(const Body& body) {
  body(dense_convolution_library());
  allow_onednn(false);
  CHECK(dense_convolution_library() == std::string_view("patches"));
  body("patches");
  allow_onednn(true);
}

bool has_onednn() { return dense_convolution_library() == std::string_view("oneDNN"); }

ConvolutionShape shape_of(const Convolved& c, std::int64_t images = 1) {
  return {c.image, images, c.outputs, c.size, c.stride};
}

TEST_CASE("dense convolution: shapes of these tests are oneDNN's, other kernels have none") {
  for (const Convolved& c : kShapes) {
    CAPTURE(c.image.height);
    CAPTURE(c.outputs);
    const auto is_direct = [&](ConvolutionProduct product) {
      return dense_convolution(product, shape_of(c)) != nullptr;
    };
    CHECK(is_direct(ConvolutionProduct::kForward) == has_onednn());
    CHECK(is_direct(ConvolutionProduct::kBackwardInput) == (has_onednn() && c.image.channels >= 8));
    // By AVX2 only of few channels, and oneDNN has none of less than a window.
    if (c.image.channels > 16 || c.image.height < c.size) continue;
    CHECK(is_direct(ConvolutionProduct::kBackwardWeight) == has_onednn());
  }
  const Convolved tiny{{2, 2, 64}, 1, 3, 64};
  CHECK(dense_convolution(ConvolutionProduct::kForward, shape_of(tiny)) == nullptr);
  const std::string before = kernels().name;
  use_kernels("reference");
  for (const ConvolutionProduct product : kProducts) {
    CHECK(dense_convolution(product, shape_of(kShapes[4])) == nullptr);
  }
  use_kernels(before.c_str());
}

// An element that is the sum of n products, in whatever order and with whatever pauses, is off by
// at most gamma_(n + 2) of the sum of magnitudes: n roundings of products and sums, and two more of
// the multiplier, a value times its scale, and of partial sums that begin with nothing.
TEST_CASE("dense convolution: products are within the rounding of their sums") {
  for (const Convolved& c : kShapes) {
    CAPTURE(c.image.height);
    CAPTURE(c.image.channels);
    CAPTURE(c.outputs);
    for (FormatKind kind : {FormatKind::kFp32, FormatKind::kBf16, FormatKind::kTernary}) {
      Layer layer(c, kind, false);
      const std::vector<double> w = layer.multipliers();
      const auto absolute = [](std::vector<double> v) {
        for (double& x : v) x = std::abs(x);
        return v;
      };
      const Direct<double> exact(c, layer.x(), w, layer.dy());
      const Direct<double> magnitude(c, absolute(layer.x()), absolute(w), absolute(layer.dy()));
      with_and_without([&](const char* name) {
        CAPTURE(name);
        const Products products = layer.run(Compute::kFp32);
        const auto check_close =
            [&](const std::vector<float>& actual, const std::vector<double>& expected,
                const std::vector<double>& magnitudes, std::int64_t n,
                bool scaled) { check_rounded(layer, actual, expected, magnitudes, n + 2, scaled); };
        check_close(products.y, exact.y, magnitude.y, c.inputs(), false);
        check_close(products.dx, exact.dx, magnitude.dx, c.outputs * c.size * c.size, false);
        check_close(products.dw, exact.dw, magnitude.dw, c.rows(), true);
        // d scale: rounded sums of trits times dW.
        for (std::size_t row = 0; row < products.dscale.size(); ++row) {
          if (c.group != 0) break;
          double sum = 0.0, sizes = 0.0;
          for (std::int64_t i = 0; i < c.inputs(); ++i) {
            const std::size_t at =
                row * static_cast<std::size_t>(c.inputs()) + static_cast<std::size_t>(i);
            sum += w[at] / layer.scale_at(at) * exact.dw[at];
            sizes += magnitude.dw[at];
          }
          REQUIRE(std::abs(double{products.dscale[row]} - sum) <=
                  static_cast<double>(c.rows() + c.inputs() + 2) * 0x1.01p-24 * sizes);
        }
      });
    }
  }
}

TEST_CASE("dense convolution: the bits do not depend on the number of threads") {
  for (const Convolved& c : kShapes) {
    CAPTURE(c.image.height);
    CAPTURE(c.outputs);
    Layer layer(c, FormatKind::kFp32, false);
    with_and_without([&](const char* name) {
      CAPTURE(name);
      set_thread_count(1);
      const Products alone = layer.run(Compute::kFp32);
      for (int threads : {2, 4, 7}) {
        set_thread_count(threads);
        CHECK(layer.run(Compute::kFp32) == alone);
      }
      set_thread_count(0);
      CHECK(layer.run(Compute::kFp32) == alone);
    });
  }
}

TEST_CASE("dense convolution: what an image gives does not depend on those beside it") {
  for (const Convolved& c : kShapes) {
    Layer layer(c, FormatKind::kFp32, false);
    Convolved first = c;
    first.images = 1;
    Layer one(first, FormatKind::kFp32, false);  // the same weights, and the first image
    const Products all = layer.run(Compute::kFp32), alone = one.run(Compute::kFp32);
    const auto same = [](const std::vector<float>& part, const std::vector<float>& whole) {
      return std::equal(part.begin(), part.end(), whole.begin());
    };
    const auto is_direct = [&](ConvolutionProduct product) {
      return dense_convolution(product, shape_of(c)) != nullptr;
    };
    if (is_direct(ConvolutionProduct::kForward)) CHECK(same(alone.y, all.y));
    if (is_direct(ConvolutionProduct::kBackwardInput)) CHECK(same(alone.dx, all.dx));
  }
}

TEST_CASE("dense convolution: a gradient of x is added to what is there") {
  for (const Convolved& c : kShapes) {
    Layer layer(c, FormatKind::kFp32, false);
    const Products products = layer.run(Compute::kFp32);
    Tape tape;
    const auto patches = Patches{c.image, c.size, c.stride};
    const FloatConvolution direct{linear_operands("test", layer.weight(), nullptr), patches,
                                  c.images};
    const std::vector<double> exact_dy = layer.dy();
    std::vector<float> dy(exact_dy.size()), dx(products.dx.size(), 3.0f);
    for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = static_cast<float>(exact_dy[i]);
    const Tensor to{dx.data(), {c.x_rows(), c.image.channels}};
    if (!direct.backward_input(tape, {to, false}, {dy.data(), {c.rows(), c.outputs}})) continue;
    for (std::size_t i = 0; i < dx.size(); ++i) REQUIRE(dx[i] == 3.0f + products.dx[i]);
  }
}

// Whatever a number that is not finite has a part in is not finite either. oneDNN leaves all else
// as it is; patches multiply it by the zeros around an image, too.
TEST_CASE("dense convolution: numbers that are not finite are passed on, and to nobody else") {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const Convolved& c : kShapes) {
      CAPTURE(c.image.height);
      CAPTURE(c.image.channels);
      CAPTURE(c.outputs);
      for (int operand = 0; operand < 3; ++operand) {
        CAPTURE(operand);
        Layer layer(c, FormatKind::kFp32, false);
        const auto weights = static_cast<std::size_t>(c.outputs * c.inputs());
        float* const w = const_cast<float*>(layer.weight().storage().fp32_data());
        if (operand == 0) layer.set_x(layer.x().size() / 2, bad);
        if (operand == 1) layer.set_dy(layer.dy().size() / 2, bad);
        if (operand == 2) w[weights / 2] = bad;
        const Direct<double> expected(c, layer.x(), layer.multipliers(), layer.dy());
        with_and_without([&](std::string_view name) {
          CAPTURE(name);
          const Products products = layer.run(Compute::kFp32);
          const auto check_spread = [&](const std::vector<float>& actual,
                                        const std::vector<double>& wanted, bool exactly) {
            for (std::size_t i = 0; i < actual.size(); ++i) {
              if (!std::isfinite(wanted[i])) REQUIRE(!std::isfinite(actual[i]));
              if (exactly && std::isfinite(wanted[i])) REQUIRE(std::isfinite(actual[i]));
            }
          };
          const auto by_onednn = [&](ConvolutionProduct product) {
            return name == "oneDNN" && dense_convolution(product, shape_of(c)) != nullptr;
          };
          check_spread(products.y, expected.y,
                       operand == 0 || by_onednn(ConvolutionProduct::kForward));
          check_spread(products.dx, expected.dx,
                       operand == 1 || by_onednn(ConvolutionProduct::kBackwardInput));
          check_spread(products.dw, expected.dw,
                       operand == 0 || by_onednn(ConvolutionProduct::kBackwardWeight));
        });
      }
    }
  }
}

// Operands between guards, at any place in memory; scratch and packed weights begin as NaN.
struct Run {
  Guarded<float> x, w, y;

  Run(const Convolved& c, ConvolutionProduct product, std::int64_t offset)
      : x(c.images * c.image.size(), offset),
        w(c.outputs * c.inputs(), 3 * offset % 16),
        y(c.rows() * c.outputs, 7 * offset % 16) {
    fill(x, c.images * c.image.size(), 1);
    fill(w, c.outputs * c.inputs(), 2);
    fill(y, c.rows() * c.outputs, 3);
    const auto shape = shape_of(c, c.images);
    const auto made = dense_convolution(product, shape);
    if (made == nullptr) return;
    const auto nans = [](std::int64_t n) {
      return std::vector<float>(static_cast<std::size_t>(n) + 16,
                                std::numeric_limits<float>::quiet_NaN());
    };
    std::vector<float> packed = nans(made->packed_numbers()),
                       scratch = nans(made->scratch_numbers());
    float* const at = packed.data() + offset;
    if (product != ConvolutionProduct::kBackwardWeight) {
      for (std::int64_t first = 0; first < c.outputs; first += kPackedRows) {
        made->pack_weights(first, w.data() + first * c.inputs(), at);
      }
    }
    made->run(1, x.data(), at, y.data(), scratch.data() + offset);
    if (product == ConvolutionProduct::kBackwardWeight) made->unpack_weights(at, w.data());
    CHECK(std::isnan(packed[static_cast<std::size_t>(offset + made->packed_numbers())]));
    for (std::int64_t i = made->scratch_numbers() + offset; i < std::ssize(scratch); ++i) {
      CHECK(std::isnan(scratch[static_cast<std::size_t>(i)]));
    }
  }

  static void fill(Guarded<float>& to, std::int64_t n, std::uint32_t stream) {
    const std::vector<float> values = numbers(n, stream);
    std::copy(values.begin(), values.end(), to.data());
  }
};

TEST_CASE(
    "dense convolution: the bits do not depend on the place in memory, nothing else is written") {
  for (const Convolved& c : kShapes) {
    CAPTURE(c.image.height);
    CAPTURE(c.outputs);
    for (const ConvolutionProduct product : kProducts) {
      Run aligned(c, product, 0);
      for (const std::int64_t offset : {1, 5, 15}) {
        Run moved(c, product, offset);
        CHECK(same_bits(moved.x, aligned.x, c.images * c.image.size()));
        CHECK(same_bits(moved.w, aligned.w, c.outputs * c.inputs()));
        CHECK(same_bits(moved.y, aligned.y, c.rows() * c.outputs));
      }
    }
  }
}

}  // namespace
}  // namespace tritgrad::test::test_dense_convolution
