// normalized against a naive double reference: its mean squares, of the whole matrix or of rows and
// columns, its momentum, and the limit of its direction.
#include <algorithm>
#include <cmath>

#include "tests/support/single.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_normalized {
namespace {

constexpr std::int64_t kRows = 40, kCols = 500;  // three strips of tiles, two blocks
constexpr int kSteps = 30;
constexpr double kLr = 0.125;
const Shape kShape{kRows, kCols};

// Gradients whose rows and columns differ in size, with some elements far larger than their mean
// square.
std::vector<float> gradient(std::uint32_t t) {
  std::vector<float> grad = numbers(kShape.size(), t);
  for (std::int64_t i = 0; i < kShape.size(); ++i) {
    float& g = grad[static_cast<std::size_t>(i)];
    const auto row = static_cast<float>(i / kCols % 7), col = static_cast<float>(i % kCols % 11);
    g *= (0.01f + row) * (0.1f + col) * (i % 97 == t % 97 ? 8.0f : 1.0f);
  }
  return grad;
}

struct Element {
  double w, m = 0.0;
  double tolerance = 0.0;  // of w: what fp32 arithmetic may have added up
};

// The rule in double, element by element, on a weight in fp32.
class Reference {
 public:
  Reference(const GroupSpec& group, const std::vector<double>& w) : group_(group) {
    for (const double x : w) elements.push_back({x});
  }

  void step(const std::vector<float>& grad) {
    ++t_;
    for (std::int64_t i = 0; i < kShape.size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      move(elements[at], direction(double{grad[at]}, i / kCols, i % kCols));
    }
    average(grad);
  }

  std::vector<Element> elements;
  std::int64_t limited = 0;

 private:
  bool is_factored() const { return group_.v.kind == FormatKind::kFactored; }
  double direction(double g, std::int64_t row, std::int64_t col) {
    if (t_ == 1) return 0.0;
    const auto r = static_cast<std::size_t>(row), c = static_cast<std::size_t>(col);
    const double v = is_factored() ? rows_[r] * cols_[c] / mean_ : mean_;
    const double normalized = g / std::sqrt(v / (1.0 - std::pow(group_.rule.beta2, t_ - 1)));
    const double limit = group_.rule.clip_direction;
    if (limit == 0.0 || std::abs(normalized) <= limit) return normalized;
    ++limited;
    return std::copysign(limit, normalized);
  }
  // The means are of numbers >= 0, so that errors relative to them add up, step by step. Each step
  // adds up kRows terms of a column in fp32 (those of rows in double), rounds a dozen times beside,
  // and hands this on to the row means, whose columns are decoded with it. A mean square is a
  // product of the two, and its root halves the error of both; four operations follow.
  void move(Element& element, double direction) const {
    const double momentum = group_.rule.momentum;
    element.m = momentum * element.m + (1.0 - momentum) * direction;
    element.w -= kLr * element.m;
    const double off = static_cast<double>(t_ * (kRows + 12)) + 4.0;
    const double largest = std::max(std::abs(direction), std::abs(element.m));
    element.tolerance += 0x1p-24 * (kLr * off * largest + std::abs(element.w));
  }
  void average(const std::vector<float>& grad) {
    const double beta = group_.rule.beta2;
    for (double& row : rows_) row *= beta;
    for (double& col : cols_) col *= beta;
    mean_ *= beta;
    for (std::size_t i = 0; i < grad.size(); ++i) {
      const double square = (1.0 - beta) * double{grad[i]} * double{grad[i]};
      rows_[i / kCols] += square / kCols;
      cols_[i % kCols] += square / kRows;
      mean_ += square / (kRows * kCols);
    }
  }

  GroupSpec group_;
  int t_ = 0;
  std::vector<double> rows_ = std::vector<double>(kRows, 0.0);
  std::vector<double> cols_ = std::vector<double>(kCols, 0.0);
  double mean_ = 0.0;
};

GroupSpec group_of(FormatKind v, double momentum, double clip) {
  GroupSpec group;
  group.rule.kind = RuleKind::kNormalized;
  group.rule.beta2 = 0.99;
  group.rule.momentum = momentum;
  group.rule.clip_direction = clip;
  group.v = format(v);
  group.lr = kLr;
  return group;
}

// Steps with a gradient in memory, or with one that is computed as it is read.
void step(Single& single, const std::vector<float>& grad, bool lazily) {
  const Copied copied{grad, kCols};
  const LazyGradient source = copied.source();
  if (lazily) single.w().lazy_gradient = &source;
  single.step(grad);
  single.w().lazy_gradient = nullptr;
}

}  // namespace

TEST_CASE("normalized: each form follows the double reference, however the gradient is read") {
  for (const FormatKind v : {FormatKind::kScalar, FormatKind::kFactored}) {
    for (const double momentum : {0.0, 0.5}) {
      for (const double clip : {0.0, 2.5}) {
        for (const bool lazily : {false, true}) {
          CAPTURE(std::string(format_name(v)));
          CAPTURE(momentum);
          CAPTURE(clip);
          CAPTURE(lazily);
          const GroupSpec group = group_of(v, momentum, clip);
          Single single(kShape, {}, group);
          Reference reference(group, decoded(single.w().storage()));
          for (std::uint32_t t = 1; t <= kSteps; ++t) {
            const std::vector<float> grad = gradient(t);
            step(single, grad, lazily);
            reference.step(grad);
          }
          const std::vector<double> w = decoded(single.w().storage());
          double worst = 0.0;
          for (std::size_t i = 0; i < w.size(); ++i) {
            const Element& wanted = reference.elements[i];
            worst = std::max(worst, std::abs(w[i] - wanted.w) / wanted.tolerance);
          }
          CHECK(worst <= 1.0);
          // Some are limited, most are not.
          CHECK((reference.limited > kShape.size() / 100) == (clip > 0.0));
          CHECK(reference.limited < kSteps * kShape.size() / 10);
        }
      }
    }
  }
}

TEST_CASE("normalized: a limit that nothing reaches changes no bit, one that is reached does") {
  for (const FormatKind v : {FormatKind::kScalar, FormatKind::kFactored}) {
    CAPTURE(std::string(format_name(v)));
    const auto codes = [&](double clip) {
      Single single(kShape, format(FormatKind::kLatent8), group_of(v, 0.0, clip));
      for (std::uint32_t t = 1; t <= 3; ++t) step(single, gradient(t), false);
      return all_bytes(single.w().storage());
    };
    CHECK(codes(1e6) == codes(0.0));
    CHECK(codes(1.0) != codes(0.0));
  }
}

TEST_CASE("normalized: a limited direction has the same bits for every number of threads") {
  for (const FormatKind v : {FormatKind::kScalar, FormatKind::kFactored}) {
    for (const bool lazily : {false, true}) {
      std::vector<std::vector<std::byte>> ends;
      for (const int threads : {1, 2, 3, 7}) {
        set_thread_count(threads);
        Single single({700, 333}, format(FormatKind::kLatent8), group_of(v, 0.0, 2.5));
        for (std::uint32_t t = 0; t < 3; ++t) {
          const Copied copied{numbers(700 * 333, 50 + t), 333};
          const LazyGradient source = copied.source();
          if (lazily) single.w().lazy_gradient = &source;
          single.step(copied.grad);
          single.w().lazy_gradient = nullptr;
        }
        ends.push_back(all_bytes(single.w().storage()));
        const std::vector<std::byte> state = single.state();
        ends.back().insert(ends.back().end(), state.begin(), state.end());
      }
      set_thread_count(0);
      for (const auto& end : ends) CHECK(end == ends[0]);
    }
  }
}

TEST_CASE("normalized: a limit is a number that is not negative") {
  RuleSpec spec = group_of(FormatKind::kScalar, 0.0, -1.0).rule;
  CHECK(refusal([&] { make_rule(spec); }) == "rule: clip_direction = -1 is outside [0, 1e+30)");
  spec.clip_direction = std::nan("");
  CHECK_THROWS_AS(make_rule(spec), Error);
}

}  // namespace tritgrad::test::test_normalized
