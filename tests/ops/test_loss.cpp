// Losses on many rows: threads, and gradients that others have begun.
#include "engine/memory/parallel.h"
#include "ops/loss.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_loss {
namespace {

constexpr std::int64_t kRows = 700, kClasses = 130;  // more than two units of work have

struct CrossEntropy {
  float loss;
  std::vector<float> dlogits;
  friend bool operator==(const CrossEntropy&, const CrossEntropy&) = default;
};

// The gradient of the logits begins at `before` unless 0.
CrossEntropy cross_entropy(float before = 0.0f) {
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < kRows; ++i)
    labels.push_back(static_cast<std::int32_t>(i % kClasses));
  Tape tape;
  const Var logits = tape.variable({kRows, kClasses});
  const std::vector<float> values = numbers(logits.value.size(), 1);
  std::copy(values.begin(), values.end(), logits.value.data);
  const Var loss = softmax_cross_entropy(tape, logits, labels, 0.1);
  const Var total = tape.variable({1});
  tape.record(total, {}, {}, [&tape, logits, loss, before] {
    if (before != 0.0f) tape.grad_to(logits).fill(before);
    tape.grad_to(loss).fill(1.0f);
  });
  tape.backward(total, [](Parameter&) {});
  return {*loss.value.data, {logits.grad().values().begin(), logits.grad().values().end()}};
}

}  // namespace

TEST_CASE("loss: cross entropy has the same bits for any number of threads") {
  set_thread_count(1);
  const CrossEntropy one = cross_entropy();
  for (const int threads : {2, 3}) {
    set_thread_count(threads);
    CHECK(cross_entropy() == one);
  }
  set_thread_count(0);
}

TEST_CASE("loss: the gradient of cross entropy is added to what is there") {
  const CrossEntropy fresh = cross_entropy(), added = cross_entropy(2.0f);
  for (std::size_t i = 0; i < fresh.dlogits.size(); ++i) {
    // At the label it is added in two steps, each rounded by half of 2^-22, the last place of
    // numbers from 2 on.
    REQUIRE(std::abs(double{added.dlogits[i]} - 2.0 - double{fresh.dlogits[i]}) <= 2 * 0x1p-23);
  }
}

}  // namespace tritgrad::test::test_loss
