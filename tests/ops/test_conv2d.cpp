// Convolution against its definition: exact in whole numbers, within derived bounds elsewhere, the
// same bits on every instruction set and for every number of threads.
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

}  // namespace tritgrad::test::test_conv2d
