// shifted against its scalar specification: the power of two of its gradients, and whole steps.
#include <cmath>
#include <limits>

#include "optim/largest_gradient.h"
#include "optim/rules/shifted.h"
#include "tests/support/single.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_shifted {
namespace {

const Shape kShape{40, 500};  // three strips of tiles, two blocks
constexpr double kLr = 0.125;

// Gradients whose largest element lies anywhere, and is of any size.
std::vector<float> gradient(std::uint32_t t) {
  std::vector<float> grad = numbers(kShape.size(), t);
  const float size = std::exp2(8.0f * numbers(1, 100 + t)[0]);
  for (float& g : grad) g *= size;
  const auto place = static_cast<std::size_t>(t * 7919 % kShape.size());
  grad[place] = (t % 2 == 0 ? -1.5f : 1.5f) * size;
  return grad;
}

GroupSpec group_of(double clip_value = 0.0) {
  GroupSpec group;
  group.rule.kind = RuleKind::kShifted;
  group.lr = kLr;
  group.clip_value = clip_value;
  return group;
}

void step(Single& single, const std::vector<float>& grad, bool lazily) {
  const Copied copied{grad, kShape.cols()};
  const LazyGradient source = copied.source();
  if (lazily) single.w().lazy_gradient = &source;
  single.step(grad);
  single.w().lazy_gradient = nullptr;
}

}  // namespace

TEST_CASE("shifted: the power of two is that of the rounded logarithm") {
  for (int exponent = -125; exponent <= 126; ++exponent) {
    const float power = std::ldexp(1.0f, exponent);
    CHECK(Shifted::power_of_two_near(power) == power);
    // sqrt(2) lies between these.
    const float below = std::ldexp(std::nextafter(std::sqrt(2.0f), 0.0f), exponent);
    const float above = std::ldexp(std::nextafter(std::sqrt(2.0f), 2.0f), exponent);
    CHECK(Shifted::power_of_two_near(below) == power);
    CHECK(Shifted::power_of_two_near(above) == 2.0f * power);
  }
  const float least = std::numeric_limits<float>::min();  // 2^-126
  CHECK(Shifted::power_of_two_near(least) == least);
  CHECK(Shifted::power_of_two_near(std::numeric_limits<float>::denorm_min()) == least);
  CHECK(Shifted::power_of_two_near(0.0f) == least);
}

TEST_CASE("shifted: the scalar specification in double, however the gradient is read") {
  for (const double clip : {0.0, 0.25}) {
    for (const bool lazily : {false, true}) {
      CAPTURE(clip);
      CAPTURE(lazily);
      Single single(kShape, {}, group_of(clip));
      std::vector<double> expected = decoded(single.w().storage());
      double farthest = 0.0;
      constexpr std::uint32_t kSteps = 20;
      for (std::uint32_t t = 1; t <= kSteps; ++t) {
        std::vector<float> grad = gradient(t);
        step(single, grad, lazily);
        double largest = 0.0;
        for (float& g : grad) {
          if (clip > 0.0) g = std::clamp(g, -static_cast<float>(clip), static_cast<float>(clip));
          largest = std::max(largest, std::abs(double{g}));
        }
        const double power = std::exp2(std::round(std::log2(largest)));
        for (std::size_t i = 0; i < grad.size(); ++i) {
          expected[i] -= kLr * double{grad[i]} / power;
          farthest = std::max(farthest, std::abs(expected[i]));
        }
      }
      // The direction and its product with 2^-3 are exact; a step rounds the weight once.
      const std::vector<double> w = decoded(single.w().storage());
      for (std::size_t i = 0; i < w.size(); ++i) {
        REQUIRE(std::abs(w[i] - expected[i]) <= kSteps * farthest * 0x1p-24);
      }
    }
  }
}

TEST_CASE("shifted: the largest magnitude is found wherever it lies, and in every form") {
  for (const FormatKind kept : {FormatKind::kFp32, FormatKind::kBf16}) {
    Single single(kShape, {}, group_of(), 1000, NonFinite::kRefuse, kept);
    for (const std::int64_t place : {std::int64_t{0}, std::int64_t{319}, std::int64_t{499},
                                     std::int64_t{17 * 500 + 320}, kShape.size() - 1}) {
      CAPTURE(place);
      std::vector<float> grad(static_cast<std::size_t>(kShape.size()), 0.5f);
      grad[static_cast<std::size_t>(place)] = -1.25f;  // a number of bf16, too
      single.w().zero_gradient();
      if (kept == FormatKind::kFp32) {
        std::copy(grad.begin(), grad.end(), single.w().grad.data);
      } else {
        single.w().grad = {grad.data(), kShape};
        single.w().collect_gradient();
        single.w().grad = {};
      }
      CHECK(largest_gradient(single.w()) == 1.25f);
    }
  }
}

TEST_CASE("shifted: a latent moves by the same bits in tiles, in memory and on any threads") {
  std::vector<std::vector<std::byte>> ends;
  for (const int threads : {1, 2, 7}) {
    for (const bool lazily : {false, true}) {
      set_thread_count(threads);
      Single single(kShape, format(FormatKind::kLatent8), group_of());
      for (std::uint32_t t = 1; t <= 5; ++t) step(single, gradient(t), lazily);
      CHECK(single.state().empty());  // no byte beside the latent
      ends.push_back(all_bytes(single.w().storage()));
    }
  }
  set_thread_count(0);
  for (const auto& end : ends) CHECK(end == ends[0]);
}

TEST_CASE("shifted: an error cannot be carried where there is no momentum") {
  CHECK(refusal([] {
          check_eco(group_of().rule, format(FormatKind::kTrits));
        }).find("rule 'shifted' has momentum 0 here") != std::string::npos);
}

}  // namespace tritgrad::test::test_shifted
