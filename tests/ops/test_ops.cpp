// Every op's gradient against the complex step, and the list of ops against the list of tested ops.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "ops/activation.h"
#include "ops/batch_norm.h"
#include "ops/bias.h"
#include "ops/dropout.h"
#include "ops/layer_norm.h"
#include "ops/loss.h"
#include "ops/products/linear.h"
#include "tests/support/op_cases.h"

namespace tritgrad::test::test_ops {
namespace {

constexpr std::int64_t kRows = 7;
constexpr std::int64_t kFeatures = 11;

Complex at(const Values& v, std::int64_t offset, std::int64_t i) {
  return v[static_cast<std::size_t>(offset + i)];
}

constexpr std::int64_t kX = kRows * kFeatures;  // where parameters begin

// y = f(x, parameters) element by element, then L.
Complex elementwise(
    const Values& v,
    const std::function<Complex(std::int64_t row, std::int64_t col, Complex x)>& f) {
  Values y;
  for (std::int64_t i = 0; i < kRows; ++i) {
    for (std::int64_t j = 0; j < kFeatures; ++j) y.push_back(f(i, j, at(v, i * kFeatures, j)));
  }
  return asymmetric_scalar(y);
}

FormatSpec format(FormatKind kind, int group = 0) {
  FormatSpec spec;
  spec.kind = kind;
  spec.group = group;
  return spec;
}

// Reference of linear with weights E T: also the declared surrogate of the straight-through
// gradient, in which the trit T is a real number and rounding is the identity.
Complex linear_reference(const Values& v, std::int64_t inputs, std::int64_t outputs,
                         std::int64_t groups, std::int64_t group_size, bool scaled) {
  const std::int64_t weight = kX;
  const std::int64_t scale = weight + inputs * outputs;
  Values y;
  for (std::int64_t i = 0; i < kRows; ++i) {
    for (std::int64_t o = 0; o < outputs; ++o) {
      Complex sum = 0.0;
      for (std::int64_t k = 0; k < inputs; ++k) {
        const Complex s = scaled ? at(v, scale, o * groups + k / group_size) : Complex(1.0);
        sum += at(v, i * inputs, k) * at(v, weight, o * inputs + k) * s;
      }
      y.push_back(sum);
    }
  }
  return asymmetric_scalar(y);
}

Complex norm_reference(const Values& v, bool by_column, bool centered, double eps) {
  const std::int64_t groups = by_column ? kFeatures : kRows;
  const std::int64_t members = by_column ? kRows : kFeatures;
  const auto x = [&](std::int64_t g, std::int64_t m) {
    return by_column ? at(v, m * kFeatures, g) : at(v, g * kFeatures, m);
  };
  Values mean(static_cast<std::size_t>(groups), 0.0);
  Values inverse_std(static_cast<std::size_t>(groups), 0.0);
  const double n = static_cast<double>(members);
  for (std::int64_t g = 0; g < groups; ++g) {
    Complex sum = 0.0;
    for (std::int64_t m = 0; centered && m < members; ++m) sum += x(g, m);
    const Complex mu = sum / n;
    Complex squares = 0.0;
    for (std::int64_t m = 0; m < members; ++m) squares += (x(g, m) - mu) * (x(g, m) - mu);
    mean[static_cast<std::size_t>(g)] = mu;
    inverse_std[static_cast<std::size_t>(g)] = 1.0 / std::sqrt(squares / n + eps);
  }
  return elementwise(v, [&](std::int64_t i, std::int64_t j, Complex value) {
    const auto g = static_cast<std::size_t>(by_column ? j : i);
    const Complex bias = centered ? at(v, kX + kFeatures, j) : Complex(0.0);
    return (value - mean[g]) * inverse_std[g] * at(v, kX, j) + bias;
  });
}

std::set<std::string>& tested_ops() {
  static std::set<std::string> names;
  return names;
}

void test_op(const OpCase& c) {
  check_case(c);
  tested_ops().insert(c.name);
}

void test_linear_ops() {
  for (const auto& choice :
       std::vector<std::pair<FormatKind, int>>{{FormatKind::kFp32, 0},
                                               {FormatKind::kBf16, 0},
                                               {FormatKind::kTernary, 0},
                                               {FormatKind::kTernary, 4},
                                               {FormatKind::kTernary, 9},
                                               {FormatKind::kLatent8, 0},
                                               {FormatKind::kLatent8, 4},
                                               {FormatKind::kTernaryMaster, 0}}) {
    // Named one by one: a lambda of clang 14 cannot capture a structured binding.
    const FormatKind kind = choice.first;
    const int group = choice.second;
    const FormatSpec spec = format(kind, group);
    CAPTURE(std::string(format_name(kind)));
    CAPTURE(group);
    constexpr std::int64_t kOutputs = 5;
    Parameter weight = make_parameter("w", Role::kWeight, {kOutputs, kFeatures}, spec, 1.5f);
    const std::int64_t groups = group == 0 ? 1 : (kFeatures + group - 1) / group;
    Parameter scale =
        make_parameter("s", Role::kScale, {kOutputs, groups}, format(FormatKind::kScale16), 0.9f);
    encode_all(scale.storage(), std::vector<float>{0.1f, 0.7f, 0.4f, 1.3f, 0.2f, 0.9f, 0.33f, 0.8f,
                                                   0.5f, 0.15f, 0.6f, 1.1f, 0.3f, 0.45f, 0.77f});
    Parameter* s = spec.traits().holds_trits ? &scale : nullptr;
    OpCase c{"linear",
             {&weight},
             [&](Tape& t, const Var& x) { return linear(t, x, weight, s); },
             [&](const Values& v) {
               return linear_reference(v, kFeatures, kOutputs, groups,
                                       group == 0 ? kFeatures : group, s != nullptr);
             }};
    if (s != nullptr) c.parameters.push_back(s);
    test_op(c);
  }
}

void test_elementwise_ops() {
  Parameter bias = make_parameter("b", Role::kBias, {kFeatures}, format(FormatKind::kFp32));
  test_op({"add_bias",
           {&bias},
           [&](Tape& t, const Var& x) { return add_bias(t, x, bias); },
           [](const Values& v) {
             return elementwise(v,
                                [&](auto, std::int64_t j, Complex x) { return x + at(v, kX, j); });
           }});
  test_op({"relu",
           {},
           [](Tape& t, const Var& x) { return relu(t, x); },
           [](const Values& v) {
             return elementwise(
                 v, [](auto, auto, Complex x) { return x.real() > 0.0 ? x : Complex(0.0); });
           }});
  test_op({"squared_relu",
           {},
           [](Tape& t, const Var& x) { return squared_relu(t, x); },
           [](const Values& v) {
             return elementwise(
                 v, [](auto, auto, Complex x) { return x.real() > 0.0 ? x * x : Complex(0.0); });
           }});
  test_op({"tanh",
           {},
           [](Tape& t, const Var& x) { return tanh(t, x); },
           [](const Values& v) {
             return elementwise(v, [](auto, auto, Complex x) { return std::tanh(x); });
           }});
  const RandomKey key{5, 6, 7};
  constexpr std::uint32_t kThreshold = 0x4000;  // p = 1/4
  test_op({"dropout",
           {},
           [&](Tape& t, const Var& x) { return dropout(t, x, 0.25f, key); },
           [&](const Values& v) {
             return elementwise(v, [&](std::int64_t i, std::int64_t j, Complex x) {
               const auto index = static_cast<std::uint64_t>(i * kFeatures + j);
               return random_u16(key, index) >= kThreshold ? x / 0.75 : Complex(0.0);
             });
           }});
}

void test_norm_ops() {
  const FormatSpec fp32 = format(FormatKind::kFp32);
  Parameter gain = make_parameter("g", Role::kNorm, {kFeatures}, fp32);
  Parameter bias = make_parameter("b", Role::kNorm, {kFeatures}, fp32, 1.0f, 2);
  Parameter mean = make_parameter("m", Role::kStatistic, {kFeatures}, fp32, 0.0f);
  Parameter var = make_parameter("v", Role::kStatistic, {kFeatures}, fp32, 0.0f);
  test_op({"batch_norm",
           {&gain, &bias},
           [&](Tape& t, const Var& x) {
             return batch_norm(t, x, {&gain, &bias, &mean, &var});
           },
           [](const Values& v) {
             return norm_reference(v, true, true, static_cast<double>(kBatchNormEps));
           }});
  test_op({"layer_norm",
           {&gain, &bias},
           [&](Tape& t, const Var& x) { return layer_norm(t, x, gain, bias); },
           [](const Values& v) {
             return norm_reference(v, false, true, static_cast<double>(kLayerNormEps));
           }});
  test_op({"rms_norm",
           {&gain},
           [&](Tape& t, const Var& x) { return rms_norm(t, x, gain); },
           [](const Values& v) {
             return norm_reference(v, false, false, static_cast<double>(kRmsNormEps));
           }});
}

void test_loss_ops() {
  const std::vector<std::int32_t> labels{0, 10, 3, 3, 9, 1, 5};
  const std::vector<float> weights{0.5f, 3.0f, 1.0f, 0.0f,  1.0f, 2.0f,
                                   1.0f, 1.0f, 1.0f, 0.25f, 4.0f};
  static_assert(kFeatures == 11);
  const auto test_cross_entropy = [&](double smoothing, std::span<const float> class_weights) {
    OpCase cross_entropy{
        "softmax_cross_entropy",
        {},
        [&](Tape& t, const Var& x) {
          return softmax_cross_entropy(t, x, labels, smoothing, class_weights);
        },
        [&](const Values& v) {
          Complex total = 0.0;
          for (std::int64_t i = 0; i < kRows; ++i) {
            Complex sum = 0.0;
            const auto label = static_cast<std::size_t>(labels[static_cast<std::size_t>(i)]);
            const double weight =
                class_weights.empty() ? 1.0 : static_cast<double>(class_weights[label]);
            for (std::int64_t j = 0; j < kFeatures; ++j) sum += std::exp(at(v, i * kFeatures, j));
            for (std::int64_t j = 0; j < kFeatures; ++j) {
              const double one_hot = label == static_cast<std::size_t>(j) ? 1.0 : 0.0;
              const double target =
                  (1.0 - smoothing) * one_hot + smoothing / static_cast<double>(kFeatures);
              total += weight * target * (std::log(sum) - at(v, i * kFeatures, j));
            }
          }
          return total / static_cast<double>(kRows);
        }};
    cross_entropy.makes_loss = true;
    test_op(cross_entropy);
  };
  for (const double smoothing : {0.0, 0.1, 0.75}) {
    test_cross_entropy(smoothing, {});
    test_cross_entropy(smoothing, weights);
  }

  std::vector<float> target = numbers(kX, 9);
  OpCase squared_error{
      "mean_squared_error",
      {},
      [&](Tape& t, const Var& x) {
        return mean_squared_error(t, x, {target.data(), {kRows, kFeatures}});
      },
      [&](const Values& v) {
        Complex total = 0.0;
        for (std::int64_t i = 0; i < kX; ++i) {
          const Complex e = at(v, 0, i) - static_cast<double>(target[static_cast<std::size_t>(i)]);
          total += e * e;
        }
        return total / static_cast<double>(kX);
      }};
  squared_error.makes_loss = true;
  test_op(squared_error);
}

void test_ops_with_files_of_their_own() {
  test_add::for_each_add_case(test_op);
  test_attention::for_each_attention_case(test_op);
  test_conv2d::for_each_conv2d_case(test_op);
  test_embedding::for_each_embedding_case(test_op);
  test_pool::for_each_pool_case(test_op);
  test_reshape::for_each_reshape_case(test_op);
  test_rotary::for_each_rotary_case(test_op);
  test_swiglu::for_each_swiglu_case(test_op);
}

// Names of all functions declared in ops/*.h that return a Var, or one in int8.
std::set<std::string> declared_ops() {
  std::set<std::string> names;
  const std::regex declaration(R"(^(?:Quantized|Image)?Var (\w+)\()");
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(TRITGRAD_SOURCE_DIR "/ops")) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      std::smatch match;
      if (std::regex_search(line, match, declaration)) names.insert(match[1]);
    }
  }
  return names;
}

}  // namespace

TEST_CASE("ops: every gradient equals the complex step; every op is tested") {
  tested_ops().clear();
  test_linear_ops();
  test_elementwise_ops();
  test_norm_ops();
  test_loss_ops();
  test_ops_with_files_of_their_own();
  std::set<std::string> expected = declared_ops();
  CHECK(expected.size() >= 19);
  // One has no gradient (tested below), one rounds (tests/ops/products/test_integer_linear.cpp), of
  // the next two one rounds and the other is others together
  // (tests/ops/products/test_linear_norm.cpp), and the last round and are others together
  // (tests/ops/test_conv_norm.cpp).
  for (const char* op : {"batch_norm_inference", "integer_linear", "quantize", "linear_batch_norm",
                         "quantize_images", "conv_norm", "conv_norm_floats"}) {
    CHECK(expected.erase(op) == 1);
  }
  CHECK(tested_ops() == expected);
}

TEST_CASE("ops: batch_norm keeps running statistics, inference reads them") {
  const FormatSpec fp32 = format(FormatKind::kFp32);
  Parameter gain = make_parameter("g", Role::kNorm, {2}, fp32);
  Parameter bias = make_parameter("b", Role::kNorm, {2}, fp32);
  Parameter mean = make_parameter("m", Role::kStatistic, {2}, fp32, 0.0f);
  Parameter var = make_parameter("v", Role::kStatistic, {2}, fp32, 0.0f);
  encode_all(gain.storage(), {1.0f, 2.0f});
  encode_all(bias.storage(), {0.0f, 1.0f});
  encode_all(var.storage(), {1.0f, 1.0f});
  std::vector<float> x{1.0f, 10.0f, 3.0f, 20.0f, 5.0f, 30.0f};
  Tape tape;
  batch_norm(tape, tape.constant({x.data(), {3, 2}}), {&gain, &bias, &mean, &var});
  // Means 3 and 20, unbiased variances 4 and 100, without a rounding; weight 0.1 for the new batch,
  // of which constants, products and the sum are rounded: by 2^-24 of the result each at most.
  const auto check_near = [](double actual, double expected, double roundings) {
    CHECK(std::abs(actual - expected) <= roundings * 0x1p-24 * expected);
  };
  check_near(mean.storage().fp32_data()[0], 0.3, 5.0);
  check_near(mean.storage().fp32_data()[1], 2.0, 5.0);
  check_near(var.storage().fp32_data()[0], 0.9 + 0.4, 5.0);
  check_near(var.storage().fp32_data()[1], 0.9 + 10.0, 5.0);
  const Var y =
      batch_norm_inference(tape, tape.constant({x.data(), {3, 2}}), {&gain, &bias, &mean, &var});
  // Besides, the root halves what the variance is off; eps, root, inverse, difference or product
  // with the mean, two products, the bias. Before the mean is taken off, numbers are 1.2 times as
  // large.
  const double expected = (20.0 - 2.0) / std::sqrt(10.9 + 1e-5) * 2.0 + 1.0;
  check_near(static_cast<double>(y.value.row(1)[1]), expected, 1.2 * (5.0 + 2.5 + 7.0));
  CHECK_FALSE(y.wants_grad());
}

TEST_CASE("ops: shapes that do not fit are refused with both shapes") {
  Parameter weight = make_parameter("fc.weight", Role::kWeight, {5, 4}, format(FormatKind::kFp32));
  Tape tape;
  const Var x = tape.variable({2, 3});
  CHECK_THROWS_WITH_AS(linear(tape, x, weight),
                       "linear: x has shape [2 x 3] but 'fc.weight' has shape [5 x 4]; the last "
                       "axes must be equal",
                       Error);
  const std::vector<std::int32_t> labels{0, 3};
  x.value.fill(0.0f);
  CHECK_THROWS_WITH_AS(softmax_cross_entropy(tape, x, labels),
                       "softmax_cross_entropy: label 3 of row 1 is outside 0..2", Error);
  const std::vector<std::int32_t> good{0, 2};
  for (const double smoothing : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_WITH_AS(softmax_cross_entropy(tape, x, good, smoothing),
                         doctest::Contains("0 or more and below 1 expected"), Error);
  }
  const std::vector<float> two_weights{1.0f, 1.0f}, negative{1.0f, -1.0f, 1.0f};
  CHECK_THROWS_WITH_AS(softmax_cross_entropy(tape, x, good, 0.0, two_weights),
                       "softmax_cross_entropy: 2 class weights found, 3 expected", Error);
  CHECK_THROWS_WITH_AS(softmax_cross_entropy(tape, x, good, 0.0, negative),
                       doctest::Contains("class weight -1 found"), Error);
  Parameter one = make_parameter("b", Role::kBias, {4}, format(FormatKind::kFp32));
  CHECK_THROWS_AS(add_bias(tape, x, one), Error);
  CHECK_THROWS_AS(dropout(tape, x, 1.0f, {}), Error);
  Parameter g = make_parameter("g", Role::kNorm, {3}, format(FormatKind::kFp32));
  const Var row = tape.variable({1, 3});
  CHECK_THROWS_WITH_AS(batch_norm(tape, row, {&g, &g, &g, &g}),
                       "batch_norm: training needs at least 2 rows in a batch, got 1; use a larger "
                       "batch",
                       Error);
}

TEST_CASE("ops: of equal logits the first one is what is predicted") {
  std::vector<float> logits{1.0f, 1.0f, 0.0f, -2.0f, 2.0f, 2.0f, 0.0f, -0.0f, 0.0f};
  const Tensor rows{logits.data(), {3, 3}};
  CHECK(count_correct(rows, std::vector<std::int32_t>{0, 1, 0}) == 3);
  CHECK(count_correct(rows, std::vector<std::int32_t>{1, 2, 1}) == 0);
  CHECK(count_correct(rows, std::vector<std::int32_t>{0, 2, 2}) == 1);
}

TEST_CASE("ops: cross entropy survives extreme logits") {
  std::vector<float> logits{1e30f, -1e30f, 0.0f, 500.0f, 499.0f, 498.0f};
  const std::vector<std::int32_t> labels{0, 1};
  for (const double smoothing : {0.0, 0.1}) {
    Tape tape;
    Var x = tape.variable({2, 3});
    std::copy(logits.begin(), logits.end(), x.value.data);
    const Var loss = softmax_cross_entropy(tape, x, labels, smoothing);
    tape.backward(loss, [](Parameter&) {});
    CHECK(std::isfinite(loss.value.data[0]));
    for (float g : x.grad().values()) CHECK(std::isfinite(g));
    CHECK(count_correct(x.value, labels) == 1);
  }
}

}  // namespace tritgrad::test::test_ops
