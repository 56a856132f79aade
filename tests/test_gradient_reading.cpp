// Gradients that rules read where they are made, against those that lie in memory.
#include <algorithm>

#include "engine/gradient_source.h"
#include "tests/single.h"
#include "tests/support_formats.h"

namespace tritgrad::test {
namespace {

// Several blocks in a row, several tiles, and the rest of each. The scalar format of moments is
// left out, as it adds up in another order.
TEST_CASE("optim: a gradient that is computed where it is read steps as one in memory does") {
  const Shape shape{37, 700};
  const Copied copied{numbers(shape.size(), 3), shape.cols()};
  const std::vector<float>& grad = copied.grad;
  const std::vector<float> nothing(grad.size(), 0.0f);
  const GradientSource source = copied.source();
  struct Case {
    RuleKind rule;
    double momentum = 0.0, decay = 0.0;
  };
  for (const auto& [rule, momentum, decay] :
       {Case{RuleKind::kSign, 0.0, 0.1}, Case{RuleKind::kSign}, Case{RuleKind::kSgd},
        Case{RuleKind::kAdamw}, Case{RuleKind::kNormalized}, Case{RuleKind::kNormalized, 0.5}}) {
    for (FormatKind kind :
         {FormatKind::kFp32, FormatKind::kSplit24, FormatKind::kTernary, FormatKind::kLatent8,
          FormatKind::kLatent4, FormatKind::kShared8, FormatKind::kTrits}) {
      for (FormatKind moment : {FormatKind::kFp32, FormatKind::kBf16}) {
        CAPTURE(static_cast<int>(rule));
        CAPTURE(std::string(format_name(kind)));
        GroupSpec group;
        group.rule.kind = rule;
        group.rule.momentum = momentum;
        group.rule.weight_decay = decay;
        group.lr = 0.05;
        group.m = group.v = format(moment);
        Single kept(shape, format(kind), group), read(shape, format(kind), group);
        read.w().gradient_source = &source;
        for (int step = 0; step < 3; ++step) {
          kept.step(grad);
          read.step(nothing);
        }
        CHECK(all_bytes(kept.w().storage()) == all_bytes(read.w().storage()));
        CHECK(kept.state() == read.state());
      }
    }
  }
}

// The gradient factor(row) * (sum - row), as backward in integers has it.
struct Sums {
  static std::int32_t sum(std::int64_t row, std::int64_t col) {
    return static_cast<std::int32_t>((row * 7919 + col * 104729) % 41) - 20;
  }
  // None at all, and one that is hardly a number, too.
  static float factor(std::int64_t row) {
    return row % 5 == 0 ? 0.0f : row % 5 == 1 ? 1e-44f : row % 5 == 2 ? -0.5f : 1e-3f;
  }
  static float gradient(std::int64_t row, std::int64_t col) {
    return factor(row) * static_cast<float>(sum(row, col) - static_cast<std::int32_t>(row));
  }

  GradientSource source() const {
    GradientSource source{[](const void*, std::int64_t top, std::int64_t bottom, std::int64_t left,
                             std::int64_t right, float* out) {
                            for (std::int64_t row = top; row < bottom; ++row) {
                              for (std::int64_t col = left; col < right; ++col) {
                                *out++ = gradient(row, col);
                              }
                            }
                          },
                          this, true};
    source.read_sums = [](const void* context, std::int64_t top, std::int64_t bottom,
                          std::int64_t left, std::int64_t right, std::int32_t* out) {
      for (std::int64_t row = top; row < bottom; ++row) {
        for (std::int64_t col = left; col < right; ++col) {
          out[(row - top) * kBlock + (col - left)] = sum(row, col);
        }
      }
      const auto* self = static_cast<const Sums*>(context);
      return SumRows{self->corrections.data() + top, self->factors.data() + top};
    };
    return source;
  }

  std::vector<std::int32_t> corrections;
  std::vector<float> factors;
};

TEST_CASE("optim: the signs of a product's sums vote as those of the gradient do") {
  const Shape shape{37, 700};
  Sums sums;
  std::vector<float> grad;
  for (std::int64_t row = 0; row < shape.rows(); ++row) {
    sums.corrections.push_back(static_cast<std::int32_t>(row));
    sums.factors.push_back(Sums::factor(row));
    for (std::int64_t col = 0; col < shape.cols(); ++col) {
      grad.push_back(Sums::gradient(row, col));
    }
  }
  CHECK(std::count(grad.begin(), grad.end(), 0.0f) < std::ssize(grad) / 2);
  const std::vector<float> nothing(grad.size(), 0.0f);
  const GradientSource source = sums.source();
  GroupSpec group;
  group.rule.kind = RuleKind::kSign;
  group.lr = 0.05;
  for (FormatKind kind :
       {FormatKind::kTernary, FormatKind::kLatent8, FormatKind::kShared8, FormatKind::kTrits}) {
    CAPTURE(std::string(format_name(kind)));
    Single kept(shape, format(kind), group), read(shape, format(kind), group);
    const std::vector<std::byte> before = all_bytes(read.w().storage());
    read.w().gradient_source = &source;
    for (int step = 0; step < 3; ++step) {
      kept.step(grad);
      read.step(nothing);
    }
    CHECK(all_bytes(kept.w().storage()) == all_bytes(read.w().storage()));
    CHECK(all_bytes(read.w().storage()) != before);
  }
}

}  // namespace
}  // namespace tritgrad::test
