// linear in integers: exact where rounding has nothing to do, within derived bounds elsewhere, the
// same bits on every instruction set and for every number of threads.
// Few rows and many read the weights in different ways and give the same bits.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/kernels/kernels.h"
#include "engine/memory/parallel.h"
#include "ops/products/linear.h"
#include "optim/optimizer.h"
#include "tests/support/given_gradient.h"
#include "tests/support/gradient_sums.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_integer_linear {
namespace {

struct LinearCase {
  FormatKind format;
  int group;
  std::int64_t rows, inputs, outputs;
  bool rectified = false;  // no x is negative
};

struct Products {
  std::vector<float> y, dx, dw, dscale;
  friend bool operator==(const Products&, const Products&) = default;
};

// A layer with its operands; `exact`: x and dy are whole numbers whose rows, and dy's columns, have
// 127 as their largest magnitude, and all scales are 1/2, so that int8 is exact.
class Layer {
 public:
  Layer(const LinearCase& c, bool exact)
      : case_(c),
        weight_(parameter("fc.weight", Role::kWeight, {c.outputs, c.inputs}, weight_format(c), 1)),
        scale_(parameter("fc.scale", Role::kScale, {c.outputs, groups(c)},
                         spec_of(FormatKind::kFp32), 2)),
        x_(numbers(c.rows * c.inputs, 3)),
        dy_(numbers(c.rows * c.outputs, 4)) {
    std::vector<float> trits = numbers(c.outputs * c.inputs, 5);
    for (float& t : trits) t *= 1.49f;
    encode_all(weight_.storage(), trits);
    std::vector<float> scales = numbers(c.outputs * groups(c), 6);
    for (float& s : scales) s = exact ? 0.5f : std::abs(s) + 0.01f;
    encode_all(scale_.storage(), scales);
    if (exact) make_exact(x_, c.inputs);
    for (float& x : x_) x = c.rectified ? std::abs(x) : x;
    if (!exact) return;
    make_exact(dy_, c.outputs);
    for (std::int64_t o = 0; o < c.outputs; ++o) {
      dy_[static_cast<std::size_t>(o % c.rows * c.outputs + o)] = 127.0f;
    }
  }

  Parameter& weight() { return weight_; }
  Parameter& scale() { return scale_; }
  std::vector<float>& x() { return x_; }
  std::vector<float>& dy() { return dy_; }

  // The gradient of y is dy.
  template <typename OnReady>
  Products run(Compute compute, const OnReady& on_ready) {
    Tape tape;
    const Var x = tape.variable({case_.rows, case_.inputs});
    std::copy(x_.begin(), x_.end(), x.value.data);
    const Var y = linear(tape, x, weight_, &scale_, compute);
    const Var loss = loss_with_gradient(tape, y, dy_);
    Products products;
    products.y.assign(y.value.values().begin(), y.value.values().end());
    tape.backward(loss, [&](Parameter& p) {
      if (&p == &scale_) {
        products.dscale.assign(p.grad.values().begin(), p.grad.values().end());
      } else if (p.lazy_gradient != nullptr) {
        const LazyGradient& source = *p.lazy_gradient;
        products.dw.resize(static_cast<std::size_t>(p.shape().size()));
        source.read(source.context, 0, case_.outputs, 0, case_.inputs, products.dw.data(), {});
        REQUIRE((source.read_sums == nullptr) == (groups(case_) > 1));
        if (source.read_sums) REQUIRE(same(gradient_from_sums(source, p.shape()), products.dw));
      } else if (p.grad) {
        products.dw.assign(p.grad.values().begin(), p.grad.values().end());
      }
      on_ready(p);
    });
    products.dx.assign(x.grad().values().begin(), x.grad().values().end());
    return products;
  }
  Products run(Compute compute) {
    return run(compute, [](Parameter&) {});
  }

  static std::int64_t groups(const LinearCase& c) {
    return c.group == 0 ? 1 : (c.inputs + c.group - 1) / c.group;
  }

 private:
  static FormatSpec weight_format(const LinearCase& c) {
    FormatSpec format = spec_of(c.format);
    format.group = c.group;
    return format;
  }
  static Parameter parameter(const char* name, Role role, const Shape& shape,
                             const FormatSpec& format, std::uint64_t seed) {
    return make_parameter(name, role, shape, format, 1.0f, seed);
  }
  static void make_exact(std::vector<float>& values, std::int64_t cols) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = std::nearbyint(values[i] * 126.0f);
      if (static_cast<std::int64_t>(i) % cols == static_cast<std::int64_t>(i) / cols % cols) {
        values[i] = i % 2 == 0 ? 127.0f : -127.0f;
      }
    }
  }
  static Tensor tensor(std::vector<float>& values, std::int64_t rows, std::int64_t cols) {
    return {values.data(), {rows, cols}};
  }

  LinearCase case_;
  Parameter weight_, scale_;
  std::vector<float> x_, dy_;
};

// All edges: blocks of 320, panels of 64, groups of four, tiles of 16 and 32, passes of 256.
const std::vector<LinearCase> kCases = {{FormatKind::kTernary, 0, 1, 1, 1},
                                        {FormatKind::kTernary, 0, 5, 3, 2},
                                        {FormatKind::kLatent8, 0, 4, 5, 33, true},
                                        {FormatKind::kTrits, 0, 7, 321, 17},
                                        {FormatKind::kLatent6, 0, 65, 70, 31, true},
                                        {FormatKind::kLatent5, 0, 3, 640, 65},
                                        {FormatKind::kLatent4, 0, 257, 130, 32},
                                        {FormatKind::kShared8, 0, 37, 333, 19, true},
                                        {FormatKind::kShared16, 64, 6, 390, 20},
                                        {FormatKind::kTernary, 0, 2, 33, 300},
                                        {FormatKind::kLatent8, 32, 6, 70, 20},
                                        {FormatKind::kTernary, 64, 5, 700, 9, true},
                                        {FormatKind::kTrits, 128, 9, 700, 260},
                                        {FormatKind::kLatent8, 128, 260, 130, 7},
                                        // Rows of codes that are kept from distances of 1024.
                                        {FormatKind::kTrits, 0, 5, 1024, 9},
                                        {FormatKind::kLatent8, 0, 5, 9, 1024},
                                        {FormatKind::kTernary, 0, 1024, 8, 5},
                                        // Wide enough for longer pieces of columns.
                                        {FormatKind::kLatent8, 0, 5, 8, 2100},
                                        // Large enough for several units of work.
                                        {FormatKind::kTernary, 0, 300, 400, 200, true}};

TEST_CASE("integer linear: exact on whole numbers, for every format and shape") {
  for (const LinearCase& c : kCases) {
    CAPTURE(std::string(format_name(c.format)));
    CAPTURE(c.inputs);
    CAPTURE(c.outputs);
    Layer layer(c, true);
    const Products integer = layer.run(Compute::kInt8);
    // Sums of whole numbers below 2^24 are exact in fp32: 127 * 127 * 1024, and 127 * 2100.
    const Products exact = layer.run(Compute::kFp32);
    REQUIRE(std::ssize(integer.dw) == c.outputs * c.inputs);
    CHECK(integer.y == exact.y);
    CHECK(integer.dx == exact.dx);
    CHECK(integer.dw == exact.dw);
    // d scale reaches 2^24 and beyond, where fp32 rounds each of at most `inputs` additions.
    const double tolerance = static_cast<double>(c.inputs) * 0x1p-24;
    double largest = 1.0;
    for (float d : exact.dscale) largest = std::max(largest, std::abs(double{d}));
    REQUIRE(integer.dscale.size() == exact.dscale.size());
    for (std::size_t i = 0; i < exact.dscale.size(); ++i) {
      // Terms of both signs may be as large as 127 * 127 * rows each.
      const double bound = tolerance * (127.0 * 127.0 * static_cast<double>(c.rows * c.inputs));
      CHECK(std::abs(double{integer.dscale[i]} - double{exact.dscale[i]}) <=
            bound + 0x1p-24 * largest);
    }
  }
}

double absmax(const float* x, std::int64_t n, std::int64_t stride) {
  double largest = 0.0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(double{x[i * stride]}));
  return largest;
}

TEST_CASE("integer linear: any numbers, within half a unit of each operand") {
  for (const LinearCase& c : kCases) {
    CAPTURE(std::string(format_name(c.format)));
    CAPTURE(c.inputs);
    CAPTURE(c.group);
    Layer layer(c, false);
    const Products integer = layer.run(Compute::kInt8);
    const Products exact = layer.run(Compute::kFp32);
    const std::vector<double> trits = decoded(layer.weight().storage());
    const std::vector<double> scales = decoded(layer.scale().storage());
    const std::int64_t groups = Layer::groups(c);
    const std::int64_t group_size = c.group == 0 ? c.inputs : c.group;
    const auto weight = [&](std::int64_t o, std::int64_t k) {
      const double t = trits[static_cast<std::size_t>(o * c.inputs + k)];
      return std::abs(t * scales[static_cast<std::size_t>(o * groups + k / group_size)]);
    };
    // fp32 sums of the one and the few roundings of the other, against terms of size 1 at most.
    const double fp32 = 0x1p-22 * static_cast<double>(std::max({c.inputs, c.outputs, c.rows}));
    for (std::int64_t r = 0; r < c.rows; ++r) {
      // x errs by half a unit, absmax / 254, so y by that times the sum of |weights|.
      const double half_x =
          absmax(&layer.x()[static_cast<std::size_t>(r * c.inputs)], c.inputs, 1) / 254.0;
      for (std::int64_t o = 0; o < c.outputs; ++o) {
        double bound = fp32;
        for (std::int64_t k = 0; k < c.inputs; ++k) bound += half_x * weight(o, k);
        const auto i = static_cast<std::size_t>(r * c.outputs + o);
        REQUIRE(std::abs(double{integer.y[i]} - double{exact.y[i]}) <= bound);
      }
      for (std::int64_t k = 0; k < c.inputs; ++k) {
        // dy E errs by half a unit of its row.
        double largest = 0.0;
        double count = 0.0;
        for (std::int64_t o = 0; o < c.outputs; ++o) {
          const double e = scales[static_cast<std::size_t>(o * groups + k / group_size)];
          largest = std::max(
              largest,
              std::abs(e * double{layer.dy()[static_cast<std::size_t>(r * c.outputs + o)]}));
          count += std::abs(trits[static_cast<std::size_t>(o * c.inputs + k)]);
        }
        const auto i = static_cast<std::size_t>(r * c.inputs + k);
        REQUIRE(std::abs(double{integer.dx[i]} - double{exact.dx[i]}) <=
                count * largest / 254.0 + fp32);
      }
    }
    for (std::int64_t o = 0; o < c.outputs; ++o) {
      // u = dy a (a: x's row scale) errs by half a unit of its column, times |codes of x| <= 127;
      // x errs by half of a, times |dy|.
      double largest_u = 0.0;
      double from_x = 0.0;
      for (std::int64_t r = 0; r < c.rows; ++r) {
        const double a =
            absmax(&layer.x()[static_cast<std::size_t>(r * c.inputs)], c.inputs, 1) / 127.0;
        const double dy = std::abs(double{layer.dy()[static_cast<std::size_t>(r * c.outputs + o)]});
        largest_u = std::max(largest_u, dy * a);
        from_x += dy * a / 2.0;
      }
      const double bound = static_cast<double>(c.rows) * largest_u / 2.0 + from_x;
      for (std::int64_t k = 0; k < c.inputs; ++k) {
        const double e = scales[static_cast<std::size_t>(o * groups + k / group_size)];
        const auto i = static_cast<std::size_t>(o * c.inputs + k);
        REQUIRE(std::abs(double{integer.dw[i]} - double{exact.dw[i]}) <= 1.001 * e * bound + fp32);
      }
    }
  }
}

TEST_CASE("integer linear: the same bits on every instruction set and for any number of threads") {
  const std::string before = kernels().name;
  for (const LinearCase& c : kCases) {
    Layer layer(c, false);
    set_thread_count(1);
    use_kernels("reference");
    const Products expected = layer.run(Compute::kInt8);
    for (const KernelTables* table : supported_kernels()) {
      use_kernels(table->name);
      for (int threads : {1, 2, 3}) {
        set_thread_count(threads);
        CAPTURE(table->name);
        CAPTURE(threads);
        CHECK(layer.run(Compute::kInt8) == expected);
      }
    }
  }
  set_thread_count(0);
  use_kernels(before.c_str());
}

TEST_CASE("integer linear: a gradient that is kept is the one that is read in tiles") {
  for (const LinearCase& c : kCases) {
    Layer layer(c, false);
    const Products read = layer.run(Compute::kInt8);
    Layer keeping(c, false);
    keeping.weight().keep_gradient();
    const Products kept = keeping.run(Compute::kInt8);
    CHECK(kept.dw == read.dw);
    // Any rectangle.
    layer.run(Compute::kInt8, [&](Parameter& p) {
      if (p.lazy_gradient == nullptr) return;
      const std::int64_t row = c.outputs / 3, col = c.inputs / 3;
      const std::int64_t rows = (c.outputs - row + 1) / 2, cols = (c.inputs - col + 1) / 2;
      std::vector<float> part(static_cast<std::size_t>(rows * cols));
      p.lazy_gradient->read(p.lazy_gradient->context, row, row + rows, col, col + cols, part.data(),
                            {});
      for (std::int64_t i = 0; i < rows * cols; ++i) {
        const std::int64_t at = (row + i / cols) * c.inputs + col + i % cols;
        REQUIRE(part[static_cast<std::size_t>(i)] == read.dw[static_cast<std::size_t>(at)]);
      }
    });
  }
}

TEST_CASE("integer linear: numbers that are not finite show, and move no weight") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float inf = std::numeric_limits<float>::infinity();
  const LinearCase c{FormatKind::kLatent8, 0, 4, 40, 6};
  for (float bad : {nan, inf, -inf, 3e38f}) {
    for (bool in_x : {true, false}) {
      Layer layer(c, false);
      (in_x ? layer.x()[50] : layer.dy()[7]) = bad;
      // Finite, but not when it is multiplied.
      if (bad == 3e38f) layer.dy()[7] = layer.x()[50] = bad;
      ParameterStore store;
      store.add(layer.weight().spec(), 1);
      GroupSpec group;
      group.rule.kind = RuleKind::kNormalized;
      Optimizer optimizer(
          store, [&](const ParameterSpec&) { return group; }, 10, 1, NonFinite::kSkip);
      Parameter& weight = store.find("fc.weight");
      const std::vector<std::byte> before = all_bytes(weight.storage());
      const Products products = layer.run(Compute::kInt8, [&](Parameter& p) {
        if (p.lazy_gradient == nullptr) return;
        CHECK_FALSE(p.lazy_gradient->finite);
        weight.lazy_gradient = p.lazy_gradient;
        optimizer.step(weight);
        weight.lazy_gradient = nullptr;
      });
      CHECK(optimizer.skipped_updates() == 1);
      CHECK(all_bytes(weight.storage()) == before);
      if (!in_x || std::isfinite(bad)) continue;
      for (std::size_t i = 0; i < products.y.size(); ++i) {
        CHECK(std::isfinite(products.y[i]) == (i / 6 != 1));
      }
    }
  }
}

TEST_CASE("integer linear: a weight that is used twice gets the sum of both gradients") {
  const LinearCase c{FormatKind::kTernary, 0, 5, 70, 9};
  Layer layer(c, true);
  std::vector<float> other = layer.x();
  for (float& x : other) x = -x;
  other[3] += 1.0f;
  const auto gradient_of = [&](const std::vector<const float*>& inputs) {
    Tape tape;
    std::vector<float> dw;
    std::vector<Var> outputs;
    for (const float* x : inputs) {
      const Tensor value{const_cast<float*>(x), {c.rows, c.inputs}};
      outputs.push_back(
          linear(tape, tape.constant(value), layer.weight(), &layer.scale(), Compute::kInt8));
    }
    const Var loss = tape.variable({1});
    tape.record(loss, {}, {}, [&] {
      for (const Var& y : outputs) {
        std::copy(layer.dy().begin(), layer.dy().end(), tape.target(y).grad.data);
      }
    });
    tape.backward(loss, [&](Parameter& p) {
      if (&p != &layer.weight()) return;
      CHECK((p.lazy_gradient == nullptr) == (inputs.size() > 1));
      dw.resize(static_cast<std::size_t>(c.outputs * c.inputs));
      if (const LazyGradient* source = p.lazy_gradient) {
        source->read(source->context, 0, c.outputs, 0, c.inputs, dw.data(), {});
      } else {
        dw.assign(p.grad.values().begin(), p.grad.values().end());
      }
    });
    return dw;
  };
  const std::vector<float> first = gradient_of({layer.x().data()});
  const std::vector<float> second = gradient_of({other.data()});
  const std::vector<float> both = gradient_of({layer.x().data(), other.data()});
  REQUIRE(std::ssize(both) == c.outputs * c.inputs);
  for (std::size_t i = 0; i < both.size(); ++i) CHECK(both[i] == second[i] + first[i]);
}

TEST_CASE("integer linear: a scale of zero still has its gradient") {
  const LinearCase c{FormatKind::kTernary, 0, 5, 90, 8};
  Layer layer(c, true);
  std::vector<float> scales(8, 0.5f);
  scales[3] = 0.0f;
  encode_all(layer.scale().storage(), scales);
  const Products integer = layer.run(Compute::kInt8);
  const Products exact = layer.run(Compute::kFp32);
  // Whole numbers below 2^24: both are exact.
  CHECK(integer.dscale[3] == exact.dscale[3]);
  CHECK(integer.dscale[3] != 0.0f);
}

TEST_CASE("integer linear: a batch whose sums could overflow is refused") {
  Layer layer({FormatKind::kTrits, 0, 65537, 1, 1}, false);
  CHECK_THROWS_WITH_AS(layer.run(Compute::kInt8),
                       "linear: x has shape [65537 x 1]; in int8 a batch has at most 65536 rows; "
                       "use a smaller batch or --compute fp32",
                       Error);
  // The largest sums that there are: all codes 127, x rectified and not.
  for (bool rectified : {false, true}) {
    Layer largest({FormatKind::kTrits, 0, 65536, 2, 1, rectified}, false);
    std::fill(largest.x().begin(), largest.x().end(), 127.0f);
    if (!rectified) largest.x()[0] = -127.0f;
    std::fill(largest.dy().begin(), largest.dy().end(), 127.0f);
    encode_all(largest.scale().storage(), {1.0f});
    const Products products = largest.run(Compute::kInt8);
    const double sum = 127.0 * 127.0 * 65536.0;
    CHECK(products.dw[1] == static_cast<float>(sum));
    CHECK(products.dw[0] == static_cast<float>(rectified ? sum : sum - 2.0 * 127.0 * 127.0));
  }
}

FormatSpec ternary_format(FormatKind kind, int group = 0) {
  FormatSpec format;
  format.kind = kind;
  format.group = group;
  return format;
}

std::vector<float> product(Parameter& weight, Parameter& scale, std::vector<float>& x,
                           std::int64_t rows) {
  Tape tape;
  tape.set_recording(false);
  const Tensor input{x.data(), {rows, weight.shape().cols()}};
  const Var y = linear(tape, tape.constant(input), weight, &scale, Compute::kInt8);
  return {y.value.values().begin(), y.value.values().end()};
}

}  // namespace

TEST_CASE("integer rows: a row of y does not depend on the rows beside it") {
  constexpr std::int64_t kRows = 300, kOutputs = 70;
  for (FormatKind kind :
       {FormatKind::kTrits, FormatKind::kTernary, FormatKind::kLatent8, FormatKind::kLatent6,
        FormatKind::kLatent5, FormatKind::kLatent4, FormatKind::kShared4, FormatKind::kShared16}) {
    for (std::int64_t inputs : {3, 320, 333, 997}) {
      for (int group : {0, 32}) {
        Parameter weight =
            make_parameter("w", Role::kWeight, {kOutputs, inputs}, ternary_format(kind, group));
        std::vector<float> trits(static_cast<std::size_t>(kOutputs * inputs));
        for (std::size_t i = 0; i < trits.size(); ++i) {
          trits[i] = static_cast<float>(random_below({4, 5, 6}, i, 3)) - 1.0f;
        }
        encode_all(weight.storage(), trits);
        const std::int64_t groups = group == 0 ? 1 : (inputs + group - 1) / group;
        Parameter scale = make_parameter("s", Role::kScale, {kOutputs, groups}, {}, 0.5f);
        std::vector<float> x = numbers(kRows * inputs, 8);
        for (const KernelTables* table : supported_kernels()) {
          const std::string before = kernels().name;
          use_kernels(table->name);
          const std::vector<float> all = product(weight, scale, x, kRows);
          for (std::int64_t rows : {1, 2, 3, 4, 5, 64, 257}) {
            const std::vector<float> some = product(weight, scale, x, rows);
            CHECK(std::equal(some.begin(), some.end(), all.begin()));
          }
          use_kernels(before.c_str());
        }
      }
    }
  }
}

// Enough products for several threads, which share the rows of one tile.
TEST_CASE(
    "integer rows: a few outputs are the same for any number of threads, in parts and whole") {
  constexpr std::int64_t kRows = 256, kOutputs = 40, kInputs = 413;
  for (int group : {0, 32}) {
    CAPTURE(group);
    Parameter weight = make_parameter("w", Role::kWeight, {kOutputs, kInputs},
                                      ternary_format(FormatKind::kTernary, group));
    encode_all(weight.storage(), numbers(kOutputs * kInputs, 5));
    const std::int64_t groups = group == 0 ? 1 : (kInputs + group - 1) / group;
    Parameter scale = make_parameter("s", Role::kScale, {kOutputs, groups}, {}, 0.5f);
    std::vector<float> x = numbers(kRows * kInputs, 8);
    set_thread_count(1);
    const std::vector<float> whole = product(weight, scale, x, kRows);
    std::vector<float> parts;
    for (std::int64_t row = 0; row < kRows; row += 16) {
      std::vector<float> rows(x.begin() + row * kInputs, x.begin() + (row + 16) * kInputs);
      const std::vector<float> part = product(weight, scale, rows, 16);
      parts.insert(parts.end(), part.begin(), part.end());
    }
    CHECK(parts == whole);
    for (int threads : {2, 3, 4}) {
      CAPTURE(threads);
      set_thread_count(threads);
      CHECK(product(weight, scale, x, kRows) == whole);
    }
    set_thread_count(0);
  }
}

}  // namespace tritgrad::test::test_integer_linear
