// Products in integers with few rows and with many: they read the weights in different ways and
// give the same bits.
#include "engine/kernels/kernels.h"
#include "engine/memory/parallel.h"
#include "ops/products/linear.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_integer_rows {
namespace {

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

}  // namespace tritgrad::test::test_integer_rows
