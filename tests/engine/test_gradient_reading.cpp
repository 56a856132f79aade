// Gradients that rules read where they are made, against those that lie in memory.
#include <algorithm>

#include "engine/lazy_gradient.h"
#include "tests/support/single.h"
#include "tests/support/support_formats.h"

namespace tritgrad::test::test_gradient_reading {
namespace {

// Several blocks in a row, several tiles, and the rest of each. The scalar format of moments is
// left out, as it adds up in another order.
TEST_CASE("optim: a gradient that is computed where it is read steps as one in memory does") {
  const Shape shape{37, 700};
  const Copied copied{numbers(shape.size(), 3), shape.cols()};
  const std::vector<float>& grad = copied.grad;
  const std::vector<float> nothing(grad.size(), 0.0f);
  const LazyGradient source = copied.source();
  struct Case {
    RuleKind rule;
    double momentum = 0.0, decay = 0.0;
  };
  for (const Case& each :
       {Case{RuleKind::kSign, 0.0, 0.1}, Case{RuleKind::kSign}, Case{RuleKind::kSgd},
        Case{RuleKind::kAdamw}, Case{RuleKind::kNormalized}, Case{RuleKind::kNormalized, 0.5}}) {
    for (FormatKind kind :
         {FormatKind::kFp32, FormatKind::kSplit24, FormatKind::kTernary, FormatKind::kLatent8,
          FormatKind::kLatent4, FormatKind::kShared8, FormatKind::kTrits}) {
      for (FormatKind moment : {FormatKind::kFp32, FormatKind::kBf16}) {
        CAPTURE(static_cast<int>(each.rule));
        CAPTURE(std::string(format_name(kind)));
        GroupSpec group;
        group.rule.kind = each.rule;
        group.rule.momentum = each.momentum;
        group.rule.weight_decay = each.decay;
        group.lr = 0.05;
        group.m = group.v = format(moment);
        Single kept(shape, format(kind), group), read(shape, format(kind), group);
        read.w().lazy_gradient = &source;
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

  LazyGradient source() const {
    LazyGradient source{[](const void*, std::int64_t top, std::int64_t bottom, std::int64_t left,
                           std::int64_t right, float* out, const PrefetchList&) {
                          for (std::int64_t row = top; row < bottom; ++row) {
                            for (std::int64_t col = left; col < right; ++col) {
                              *out++ = gradient(row, col);
                            }
                          }
                        },
                        this, true};
    source.read_sums = [](const void* context, std::int64_t top, std::int64_t bottom,
                          std::int64_t left, std::int64_t right, std::int32_t* out,
                          const PrefetchList&) {
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

// Formats that read signs in place, and how they are trained by them.
constexpr FormatKind kVoting[] = {FormatKind::kTernary, FormatKind::kLatent8, FormatKind::kShared8,
                                  FormatKind::kTrits};
GroupSpec votes() {
  GroupSpec group;
  group.rule.kind = RuleKind::kSign;
  group.lr = 0.05;
  return group;
}

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
  const LazyGradient source = sums.source();
  const GroupSpec group = votes();
  for (FormatKind kind : kVoting) {
    CAPTURE(std::string(format_name(kind)));
    Single kept(shape, format(kind), group), read(shape, format(kind), group);
    const std::vector<std::byte> before = all_bytes(read.w().storage());
    read.w().lazy_gradient = &source;
    for (int step = 0; step < 3; ++step) {
      kept.step(grad);
      read.step(nothing);
    }
    CHECK(all_bytes(kept.w().storage()) == all_bytes(read.w().storage()));
    CHECK(all_bytes(read.w().storage()) != before);
  }
}

// Rows of more blocks than are updated at once, and the rest of one. What a rule that scales the
// gradient keeps of it is the sum of its squares, row by row and in a row block by block.
TEST_CASE("optim: a gradient in memory is measured exactly, however it lies there") {
  const Shape shape{2, (kMostBlocksAtOnce + 1) * kBlock + 60};
  const std::vector<float> grad = numbers(shape.size(), 3);
  for (FormatKind gradient : {FormatKind::kFp32, FormatKind::kBf16}) {
    for (const double clip : {0.0, 0.25}) {
      GroupSpec group;
      group.rule.kind = RuleKind::kNormalized;
      group.rule.beta2 = 0.5;
      group.clip_value = clip;
      group.v = format(FormatKind::kScalar);
      Single single(shape, format(FormatKind::kLatent8), group, 1000, NonFinite::kRefuse, gradient);
      single.step(grad);
      double squares = 0.0;
      std::array<float, kBlock> block;
      for_each_block(shape, [&](const Block& at) {
        for (std::int64_t i = 0; i < at.n; ++i) {
          float& g = block[static_cast<std::size_t>(i)];
          g = grad[static_cast<std::size_t>(at.row * shape.cols() + at.col + i)];
          if (gradient == FormatKind::kBf16) {
            std::uint16_t bits;
            kernels().codecs.float_to_bf16(&bits, &g, nullptr, 1);
            kernels().codecs.bf16_to_float(&g, &bits, 1);
          }
          const auto limit = static_cast<float>(clip);
          if (clip > 0.0) g = std::clamp(g, -limit, limit);
        }
        squares += kernels().reductions.sum_of_squares(block.data(), at.n);
      });
      float v;
      single.optimizer->moment(single.w(), 0).decode_master({0, 0, 1, 0}, &v);
      CHECK(v == static_cast<float>(0.5 * squares / static_cast<double>(shape.size())));
    }
  }
}

TEST_CASE("optim: signs that are read in place move weights as signs that were written do") {
  const Shape shape{2, (kMostBlocksAtOnce + 1) * kBlock + 60};
  std::vector<float> grad = numbers(shape.size(), 3);
  for (std::size_t i = 0; i < grad.size(); i += 7) grad[i] = 0.0f;
  std::vector<float> signs(grad.size());
  kernels().updates.sign(signs.data(), grad.data(), shape.size());
  const GroupSpec group = votes();
  for (FormatKind kind : kVoting) {
    CAPTURE(std::string(format_name(kind)));
    Single single(shape, format(kind), group);
    Storage expected(format(kind), shape, Category::kWeights);
    std::vector<float> masters(grad.size());
    const Parameter& w = single.w();
    for_each_block(shape, [&](const Block& at) {
      w.storage().decode_master(at, masters.data() + at.row * shape.cols() + at.col);
    });
    encode_all(expected, masters);
    REQUIRE(all_bytes(expected) == all_bytes(w.storage()));
    for (std::uint32_t step = 1; step <= 3; ++step) {
      single.step(grad);
      const Descent descent{0.05f, {5, w.stream(), step}};
      for_each_block(shape, [&](const Block& at) {
        descend_block(expected, at, signs.data() + at.row * shape.cols() + at.col, descent);
      });
    }
    CHECK(all_bytes(expected) == all_bytes(w.storage()));
  }
}

}  // namespace
}  // namespace tritgrad::test::test_gradient_reading
