// A linear layer, its batch norm and the rounding behind them as one op: the bits of the three, in
// codes, gradients and running statistics.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "engine/memory/parallel.h"
#include "ops/products/integer_linear.h"
#include "ops/products/linear_norm.h"
#include "tests/support/gradient_sums.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_linear_norm {
namespace {

struct LayerCase {
  FormatKind format;
  int group;
  std::int64_t rows, inputs, outputs;
  bool in_strips = true;
};

// Strips of 64 columns, rows of x in chunks of 256; and what goes by single ops: rows above 256,
// groups, and narrow outputs.
const std::vector<LayerCase> kCases = {
    {FormatKind::kLatent8, 0, 2, 70, 129},          {FormatKind::kLatent8, 0, 7, 33, 192},
    {FormatKind::kTernary, 0, 3, 5, 191},           {FormatKind::kLatent6, 0, 37, 65, 193},
    {FormatKind::kTrits, 0, 256, 30, 192},          {FormatKind::kLatent8, 0, 16, 20, 1100},
    {FormatKind::kShared8, 0, 17, 321, 300},        {FormatKind::kLatent8, 0, 64, 40, 160},
    {FormatKind::kLatent8, 0, 257, 12, 130, false}, {FormatKind::kLatent8, 32, 6, 70, 150, false},
    {FormatKind::kLatent8, 0, 7, 20, 128, false},
};

// A gradient of so many columns, as the layers above write it.
void give(const std::vector<float>& dy, const InputGradient& to, std::int64_t cols) {
  for (std::int64_t r = 0; r < to.place.rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c)
      *to.place.at(r, c) = dy[static_cast<std::size_t>(r * cols + c)];
  }
}

// Returns the codes with the zeros behind each row.
std::vector<float> codes(const QuantizedRows& rows) {
  return {rows.codes, rows.codes + rows.rows * rows.ld};
}

std::size_t count(const Parameter& p) { return static_cast<std::size_t>(p.shape().size()); }

std::vector<float> values(const Tensor& t) { return {t.values().begin(), t.values().end()}; }

// Returns the gradient of a parameter that is ready: what it collected, or what its source gives.
std::vector<float> gradient(const Parameter& p) {
  if (p.lazy_gradient == nullptr) return values(p.grad);
  std::vector<float> dw(count(p));
  p.lazy_gradient->read(p.lazy_gradient->context, 0, p.shape().rows(), 0, p.shape().cols(),
                        dw.data(), {});
  return dw;
}

struct Results {
  // Gradients of parameters, codes and their scales, the gradient of x, running statistics. Of a
  // weight that is offered as a source, what the source gives.
  std::vector<std::vector<float>> all;
  std::vector<std::ptrdiff_t> ready;  // parameters, in the order in which they became so
  bool finite = true;                 // as the weight's source has it
  bool operator==(const Results& other) const {
    return ready == other.ready && finite == other.finite &&
           std::equal(all.begin(), all.end(), other.all.begin(), other.all.end(), same);
  }
};

enum class Ops { kSingle, kOne, kOneOfFloats };

class Layer {
 public:
  explicit Layer(const LayerCase& c)
      : case_(c),
        x_(numbers(c.rows * c.inputs, 3)),
        dy_(numbers(c.rows * c.outputs, 4)),
        weight_(make("fc.weight", Role::kWeight, {c.outputs, c.inputs}, c.format, c.group)),
        scale_(make("fc.scale", Role::kScale, {c.outputs, groups()}, FormatKind::kFp32)) {
    for (float& s : std::span(scale_.storage().fp32_data(), count(scale_))) s = s * s + 0.01f;
    if (c.outputs > 2) scale_.storage().fp32_data()[2] = 0.0f;
  }
  std::vector<float>& x() { return x_; }

  // The layer `times` times on the same x, whose gradients are added up; each result has the
  // gradient dy.
  Results run(Ops ops, Rectify rectify, bool wants_dx = true, std::size_t times = 1) const {
    const auto norm = [&](const char* name, Role role) {
      return make(name, role, {case_.outputs}, FormatKind::kFp32);
    };
    std::array<Parameter, 4> norms{norm("gain", Role::kNorm), norm("bias", Role::kNorm),
                                   norm("mean", Role::kStatistic), norm("var", Role::kStatistic)};
    const BatchNormParameters p{&norms[0], &norms[1], &norms[2], &norms[3]};
    Tape tape;
    const Var x = tape.variable({case_.rows, case_.inputs}, wants_dx);
    std::copy(x_.begin(), x_.end(), x.value.data);
    std::vector<QuantizedVar> ys;
    for (std::size_t i = 0; i < times; ++i) {
      if (ops == Ops::kOne) {
        ys.push_back(linear_batch_norm(tape, quantize(tape, x), weight_, &scale_, p, rectify));
      } else if (ops == Ops::kOneOfFloats) {
        ys.push_back(quantize(
            tape, linear_batch_norm(tape, x, weight_, &scale_, Compute::kInt8, p, rectify)));
      } else {
        const Var z = linear(tape, x, weight_, &scale_, Compute::kInt8);
        ys.push_back(quantize(tape, batch_norm(tape, z, p, rectify)));
      }
    }
    CHECK(tape.node_count() == times * (ops != Ops::kSingle && case_.in_strips ? 1 : 2));
    const std::array<const Parameter*, 4> order{&weight_, &scale_, p.gain, p.bias};
    Results results;
    results.all.resize(order.size());
    for (const QuantizedVar& y : ys) {
      results.all.push_back(codes(y.rows));
      results.all.emplace_back(y.rows.scales, y.rows.scales + y.rows.rows);
    }
    const Var loss = tape.variable({1});
    tape.record(loss, {}, {}, [&tape, &ys, this] {
      for (const QuantizedVar& y : ys) {
        give(dy_, input_gradient(tape, y), y.rows.cols);
      }
    });
    tape.backward(loss, [&](Parameter& parameter) {
      const auto at = std::find(order.begin(), order.end(), &parameter) - order.begin();
      results.all[static_cast<std::size_t>(at)] = gradient(parameter);
      results.ready.push_back(at);
      if (parameter.lazy_gradient != nullptr) results.finite = parameter.lazy_gradient->finite;
    });
    if (wants_dx) results.all.push_back(values(x.grad()));
    for (const Parameter* statistic : {p.running_mean, p.running_var}) {
      const float* numbers = statistic->storage().fp32_data();
      results.all.emplace_back(numbers, numbers + case_.outputs);
    }
    return results;
  }

 private:
  static Parameter make(const char* name, Role role, const Shape& shape, FormatKind kind,
                        int group = 0) {
    FormatSpec format = spec_of(kind);
    format.group = group;
    return make_parameter(name, role, shape, format, 1.0f, 5);
  }
  std::int64_t groups() const {
    return case_.group == 0 ? 1 : (case_.inputs + case_.group - 1) / case_.group;
  }

  LayerCase case_;
  std::vector<float> x_, dy_;
  mutable Parameter weight_, scale_;
};

}  // namespace

TEST_CASE("linear_batch_norm: the bits of its single ops, for any number of threads") {
  for (const LayerCase& c : kCases) {
    CAPTURE(std::string(format_name(c.format)));
    CAPTURE(c.rows);
    CAPTURE(c.outputs);
    const Layer layer(c);
    for (const Rectify rectify : {Rectify::kNo, Rectify::kYes}) {
      const Results expected = layer.run(Ops::kSingle, rectify);
      for (const int threads : {1, 3}) {
        set_thread_count(threads);
        CHECK(layer.run(Ops::kOne, rectify) == expected);
        CHECK(layer.run(Ops::kOneOfFloats, rectify) == expected);
      }
      set_thread_count(0);
    }
    for (const bool wants_dx : {false, true}) {
      const Results expected = layer.run(Ops::kSingle, Rectify::kYes, wants_dx, 2);
      CHECK(layer.run(Ops::kOne, Rectify::kYes, wants_dx, 2) == expected);
      CHECK(layer.run(Ops::kOneOfFloats, Rectify::kYes, wants_dx, 2) == expected);
    }
  }
}

// A layer whose output three others read, one of them a layer with a norm of its own and one with
// scales of groups, whose borders cut strips: dx of all is added up.
TEST_CASE("linear_batch_norm: several products add to one gradient as single ops do") {
  constexpr std::int64_t kRows = 21, kInputs = 30, kWidth = 200;
  const auto make = [](const char* name, const Shape& shape, FormatKind kind, int group = 0) {
    FormatSpec format = spec_of(kind);
    format.group = group;
    return make_parameter(name, Role::kWeight, shape, format, 1.0f, 5);
  };
  std::array<Parameter, 8> weights{make("first", {kWidth, kInputs}, FormatKind::kLatent8),
                                   make("second", {kWidth, kWidth}, FormatKind::kTrits),
                                   make("head", {7, kWidth}, FormatKind::kTrits),
                                   make("grouped", {70, kWidth}, FormatKind::kLatent8, 36),
                                   make("first.scale", {kWidth, 1}, FormatKind::kFp32),
                                   make("second.scale", {kWidth, 1}, FormatKind::kFp32),
                                   make("head.scale", {7, 1}, FormatKind::kFp32),
                                   make("grouped.scale", {70, 6}, FormatKind::kFp32)};
  std::vector<float> x_numbers = numbers(kRows * kInputs, 3);
  const std::array<std::vector<float>, 3> dys{numbers(kRows * kWidth, 4), numbers(kRows * 7, 6),
                                              numbers(kRows * 70, 7)};
  const auto run = [&](bool as_one) {
    std::array<Parameter, 4> norms{
        make("gain", {kWidth}, FormatKind::kFp32), make("bias", {kWidth}, FormatKind::kFp32),
        make("mean", {kWidth}, FormatKind::kFp32), make("var", {kWidth}, FormatKind::kFp32)};
    const BatchNormParameters p{&norms[0], &norms[1], &norms[2], &norms[3]};
    Tape tape;
    const Var x = tape.variable({kRows, kInputs});
    std::copy(x_numbers.begin(), x_numbers.end(), x.value.data);
    const auto layer = [&](const QuantizedVar& in, std::size_t i) {
      if (as_one) return linear_batch_norm(tape, in, weights[i], &weights[i + 4], p, Rectify::kYes);
      const Var z = linear(tape, in, weights[i], &weights[i + 4]);
      return quantize(tape, batch_norm(tape, z, p, Rectify::kYes));
    };
    const QuantizedVar h = layer(quantize(tape, x), 0);
    const QuantizedVar deeper = layer(h, 1);
    const Var head = linear(tape, h, weights[2], &weights[6]);
    const Var grouped = linear(tape, h, weights[3], &weights[7]);
    CHECK(tape.node_count() == (as_one ? 4 : 6));
    const Var loss = tape.variable({1});
    tape.record(loss, {}, {}, [&tape, &deeper, &head, &grouped, &dys] {
      give(dys[0], input_gradient(tape, deeper), deeper.rows.cols);
      std::copy(dys[1].begin(), dys[1].end(), tape.target(head).grad.data);
      std::copy(dys[2].begin(), dys[2].end(), tape.target(grouped).grad.data);
    });
    std::vector<std::vector<float>> results;
    tape.backward(loss, [&](Parameter& parameter) { results.push_back(gradient(parameter)); });
    results.push_back(values(x.grad()));
    return results;
  };
  const auto expected = run(false);
  CHECK(expected.size() == 11);
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    const auto results = run(true);
    CHECK(std::equal(results.begin(), results.end(), expected.begin(), expected.end(), same));
  }
  set_thread_count(0);
}

TEST_CASE(
    "linear_batch_norm: a row that is not finite does to the batch what it does in single ops") {
  Layer layer({FormatKind::kLatent8, 0, 20, 30, 200});
  layer.x()[45] = std::numeric_limits<float>::quiet_NaN();
  const Results two = layer.run(Ops::kSingle, Rectify::kYes);
  CHECK_FALSE(two.finite);
  for (const Ops ops : {Ops::kOne, Ops::kOneOfFloats}) {
    const Results one = layer.run(ops, Rectify::kYes);
    REQUIRE(one.all.size() == two.all.size());
    CHECK_FALSE(one.finite);
    for (std::size_t i = 0; i < two.all.size(); ++i) {
      REQUIRE(one.all[i].size() == two.all[i].size());
      for (std::size_t j = 0; j < two.all[i].size(); ++j) {
        const float a = one.all[i][j], b = two.all[i][j];
        REQUIRE((a == b || (std::isnan(a) && std::isnan(b))));
      }
    }
  }
}

TEST_CASE("linear_batch_norm: a tape that records nothing gets the same codes, and no averages") {
  const std::int64_t rows = 9, inputs = 20, outputs = 150;
  const auto make = [](const char* name, Role role, const Shape& shape, FormatKind kind) {
    return make_parameter(name, role, shape, spec_of(kind));
  };
  Parameter weight = make("w", Role::kWeight, {outputs, inputs}, FormatKind::kLatent8);
  Parameter scale = make("s", Role::kScale, {outputs, 1}, FormatKind::kFp32);
  Parameter gain = make("g", Role::kNorm, {outputs}, FormatKind::kFp32);
  Parameter bias = make("b", Role::kNorm, {outputs}, FormatKind::kFp32);
  Parameter mean = make("m", Role::kStatistic, {outputs}, FormatKind::kFp32);
  Parameter var = make("v", Role::kStatistic, {outputs}, FormatKind::kFp32);
  const std::vector<double> mean_before = decoded(mean.storage());
  const std::vector<double> var_before = decoded(var.storage());
  std::vector<float> x = numbers(rows * inputs, 3);
  std::vector<std::vector<float>> ys;
  for (const auto& [recording, floats] :
       {std::pair{false, false}, std::pair{false, true}, std::pair{true, false}}) {
    Tape tape;
    tape.set_recording(recording);
    const Var in = tape.constant({x.data(), {rows, inputs}});
    const BatchNormParameters p{&gain, &bias, &mean, &var};
    const QuantizedVar y =
        floats ? quantize(tape, linear_batch_norm(tape, in, weight, &scale, Compute::kInt8, p))
               : linear_batch_norm(tape, quantize(tape, in), weight, &scale, p);
    // Scratch is over with the op; what it made must not be there.
    std::fill_n(tape.allocate_scratch<std::int8_t>(1 << 16), 1 << 16, std::int8_t{1});
    ys.push_back(codes(y.rows));
    ys.emplace_back(y.rows.scales, y.rows.scales + rows);
    CHECK(tape.node_count() == (recording ? 1 : 0));
    CHECK((decoded(mean.storage()) == mean_before) == !recording);
    CHECK((decoded(var.storage()) == var_before) == !recording);
  }
  CHECK(same(ys[0], ys[2]));
  CHECK(same(ys[1], ys[3]));
  CHECK(same(ys[0], ys[4]));
  CHECK(same(ys[1], ys[5]));
}

TEST_CASE("linear_batch_norm: of floats, weights that are multiplied in floats") {
  for (const auto& [kind, scaled] :
       {std::pair{FormatKind::kFp32, false}, std::pair{FormatKind::kLatent8, true}}) {
    const auto make = [](const char* name, Role role, const Shape& shape, FormatKind format) {
      return make_parameter(name, role, shape, spec_of(format));
    };
    Parameter weight = make("w", Role::kWeight, {200, 4}, kind);
    Parameter scale = make("s", Role::kScale, {200, 1}, FormatKind::kFp32);
    Parameter norm = make("n", Role::kNorm, {200}, FormatKind::kFp32);
    Parameter mean = make("m", Role::kStatistic, {200}, FormatKind::kFp32);
    Parameter var = make("v", Role::kStatistic, {200}, FormatKind::kFp32);
    const BatchNormParameters p{&norm, &norm, &mean, &var};
    std::vector<float> x = numbers(8 * 4, 3);
    Tape tape;
    const Var in = tape.constant({x.data(), {8, 4}});
    Parameter* of = scaled ? &scale : nullptr;
    const Var y = linear_batch_norm(tape, in, weight, of, Compute::kFp32, p, Rectify::kYes);
    const Var expected =
        batch_norm(tape, linear(tape, in, weight, of, Compute::kFp32), p, Rectify::kYes);
    CHECK(same(values(y.value), values(expected.value)));
  }
}

TEST_CASE("linear_batch_norm: refuses what its single ops refuse") {
  Parameter weight =
      make_parameter("fc.weight", Role::kWeight, {200, 4}, spec_of(FormatKind::kLatent8));
  Parameter scale = make_parameter("fc.scale", Role::kScale, {200, 1}, spec_of(FormatKind::kFp32));
  Parameter good = make_parameter("good", Role::kNorm, {200}, spec_of(FormatKind::kFp32));
  Parameter odd = make_parameter("odd", Role::kNorm, {3}, spec_of(FormatKind::kFp32));
  const BatchNormParameters norm{&good, &good, &good, &good};
  for (const bool floats : {false, true}) {
    const auto run = [&](const Shape& shape, const BatchNormParameters& p) {
      Tape tape;
      const Var x = tape.variable(shape);
      x.value.fill(1.0f);
      if (floats) {
        linear_batch_norm(tape, x, weight, &scale, Compute::kInt8, p);
      } else {
        linear_batch_norm(tape, quantize(tape, x), weight, &scale, p);
      }
    };
    CHECK_THROWS_WITH_AS(run({8, 3}, norm),
                         "linear: x has shape [8 x 3] but 'fc.weight' has shape [200 x 4]; the "
                         "last axes must be equal",
                         Error);
    CHECK_THROWS_WITH_AS(run({8, 4}, {&odd, &good, &good, &good}),
                         "batch_norm: x has shape [8 x 200] but 'odd' has shape [3]", Error);
    CHECK_THROWS_WITH_AS(run({1, 4}, norm),
                         "batch_norm: training needs at least 2 rows in a batch, got 1; use a "
                         "larger batch",
                         Error);
  }
  Parameter bare = make_parameter("bare", Role::kWeight, {200, 4}, spec_of(FormatKind::kFp32));
  Tape tape;
  const Var x = tape.variable({8, 4});
  x.value.fill(1.0f);
  for (const auto& op : std::vector<std::function<void(const QuantizedVar&)>>{
           [&](const QuantizedVar& q) { linear_batch_norm(tape, q, bare, nullptr, norm); },
           [&](const QuantizedVar& q) { linear(tape, q, bare, nullptr); }}) {
    CHECK_THROWS_WITH_AS(op(quantize(tape, x)),
                         "linear: x is rounded to int8, but 'bare' is not multiplied in integers; "
                         "give x in floats",
                         Error);
  }
}

}  // namespace tritgrad::test::test_linear_norm
