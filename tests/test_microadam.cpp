// MicroAdam against a dense recomputation, and the codes of its error feedback.
#include <bit>
#include <set>

#include "models/recipe.h"
#include "optim/rules/feedback_codes.h"
#include "tests/single.h"

namespace tritgrad::test {
namespace {

double from_bf16(std::uint16_t x) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16));
}

GroupSpec micro_group(int bits, WindowForm form) {
  GroupSpec group;
  group.rule.kind = RuleKind::kMicroadam;
  group.rule.density = 0.1;
  group.rule.window = 4;
  group.rule.feedback_bits = bits;
  group.rule.bucket = 16;
  group.rule.window_form = form;
  group.lr = 0.01;
  return group;
}

// The decoded feedback of one run, from the planes, by a decoder of its own.
std::vector<double> feedback(Single& single, std::int64_t n, const RuleSpec& spec) {
  std::vector<double> error(static_cast<std::size_t>(n), 0.0);
  if (spec.feedback_bits == 0) return error;
  const auto codes = single.plane<std::uint8_t>("w/microadam/error");
  const auto bounds = single.plane<std::uint16_t>("w/microadam/bounds");
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint32_t code = 0;
    for (int b = 0; b < spec.feedback_bits; ++b) {
      const auto bit = static_cast<std::size_t>(i * spec.feedback_bits + b);
      code |= static_cast<std::uint32_t>(codes[bit / 8] >> bit % 8 & 1) << b;
    }
    const auto bucket = static_cast<std::size_t>(i / spec.bucket);
    const double low = from_bf16(bounds[2 * bucket]), high = from_bf16(bounds[2 * bucket + 1]);
    error[static_cast<std::size_t>(i)] =
        low + (high - low) * code / ((1 << spec.feedback_bits) - 1);
  }
  return error;
}

// What the window makes of its rows, recomputed densely in double: the direction of step t.
std::vector<double> dense_direction(Single& single, std::int64_t n, const RuleSpec& spec, int t) {
  const auto index = single.plane<std::uint16_t>("w/microadam/index");
  const auto value = single.plane<std::uint16_t>("w/microadam/value");
  const std::size_t kept = index.size() / static_cast<std::size_t>(spec.window);
  std::vector<double> z1(static_cast<std::size_t>(n), 0.0), z2 = z1;
  for (int row = 0; row < std::min(t, spec.window); ++row) {
    int age = (t - 1 - row) % spec.window;
    if (spec.window_form == WindowForm::kStudy) age = (t - age) % spec.window;
    for (std::size_t j = 0; j < kept; ++j) {
      const std::size_t at = static_cast<std::size_t>(row) * kept + j;
      z1[index[at]] += std::pow(spec.beta1, age) * from_bf16(value[at]);
      z2[index[at]] += std::pow(spec.beta2, age) * std::pow(from_bf16(value[at]), 2);
    }
  }
  const int mass = spec.window_form == WindowForm::kCorrected ? std::min(t, spec.window) : t;
  const double c1 = 1 - std::pow(spec.beta1, mass), c2 = 1 - std::pow(spec.beta2, mass);
  const double twice = spec.window_form == WindowForm::kStudy ? std::sqrt(c2) / c1 : 1.0;
  std::vector<double> direction;
  for (std::size_t i = 0; i < z1.size(); ++i) {
    const double m = (1 - spec.beta1) * z1[i] / c1, v = (1 - spec.beta2) * z2[i] / c2;
    direction.push_back(twice * m / (std::sqrt(v) + spec.eps));
  }
  return direction;
}

void compare_with_dense(int bits, WindowForm form) {
  CAPTURE(bits);
  CAPTURE(static_cast<int>(form));
  const GroupSpec group = micro_group(bits, form);
  const RuleSpec& spec = group.rule;
  const std::int64_t n = 203;  // 21 are kept; the last bucket has 11
  Single single({n}, {}, group);
  for (int t = 1; t <= 13; ++t) {
    const std::vector<float> grad = numbers(n, static_cast<std::uint32_t>(t));
    std::vector<double> a = feedback(single, n, spec);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += static_cast<double>(grad[i]);
    const std::vector<double> before = decoded(single.w().storage());
    single.step(grad);
    const std::vector<double> after = decoded(single.w().storage());

    // The newest row: the 21 largest |a|, in rising order, as bf16.
    const auto index = single.plane<std::uint16_t>("w/microadam/index");
    const auto value = single.plane<std::uint16_t>("w/microadam/value");
    const std::size_t row = static_cast<std::size_t>((t - 1) % spec.window) * 21;
    double smallest_kept = 1e9;
    std::set<std::size_t> kept;
    for (std::size_t j = 0; j < 21; ++j) {
      const std::size_t i = index[row + j];
      CHECK(kept.insert(i).second);
      smallest_kept = std::min(smallest_kept, std::abs(a[i]));
      // a is summed in fp32 and rounded to bf16, 8 significant bits: 2^-8 relative, and 2^-23 of
      // the terms.
      CHECK(std::abs(from_bf16(value[row + j]) - a[i]) <= std::abs(a[i]) * 0x1p-8 + 0x1p-22);
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!kept.contains(i)) CHECK(std::abs(a[i]) <= smallest_kept + 0x1p-22);
    }

    // What was not kept, and what bf16 dropped, is in the feedback, to one step of its grid.
    if (bits > 0) {
      const std::vector<double> error = feedback(single, n, spec);
      const auto bounds = single.plane<std::uint16_t>("w/microadam/bounds");
      for (std::size_t j = 0; j < 21; ++j) a[index[row + j]] -= from_bf16(value[row + j]);
      for (std::size_t i = 0; i < a.size(); ++i) {
        const std::size_t bucket = i / 16;
        const double unit =
            (from_bf16(bounds[2 * bucket + 1]) - from_bf16(bounds[2 * bucket])) / ((1 << bits) - 1);
        CHECK(std::abs(error[i] - a[i]) <= unit * (1.0 + 1e-4) + 0x1p-21);
      }
    }

    const std::vector<double> direction = dense_direction(single, n, spec, t);
    for (std::size_t i = 0; i < a.size(); ++i) {
      // A quotient of sums of 4 terms in fp32, at most 10 in size; and one rounding of w.
      CHECK(std::abs(after[i] - (before[i] - group.lr * direction[i])) <= 0x1p-24 * 4.0);
    }
  }
}

}  // namespace

TEST_CASE("microadam: window, bias and feedback equal a dense recomputation") {
  for (WindowForm form : {WindowForm::kCorrected, WindowForm::kPublished, WindowForm::kStudy}) {
    for (int bits : {0, 2, 3, 4, 5, 7, 8}) compare_with_dense(bits, form);
  }
}

TEST_CASE("microadam: a constant gradient moves by lr, whatever the age of the window") {
  // Every row holds the coordinate: m^ / sqrt(v^) is 1 in the corrected form and grows as the
  // published one divides by a mass that the window does not have: sqrt((1 - .999^t) / (1 -
  // .999^10)) (1 - .9^10) / (1 - .9^t) for t >= 10.
  for (WindowForm form : {WindowForm::kCorrected, WindowForm::kPublished}) {
    GroupSpec group;
    group.rule.kind = RuleKind::kMicroadam;
    group.rule.density = 1.0;
    group.rule.window_form = form;
    group.lr = 1e-3;
    Single single({8}, {}, group);
    double before = 0.0;
    for (int t = 1; t <= 300; ++t) {
      before = decoded(single.w().storage())[0];
      single.step(std::vector<float>(8, 0.5f));
    }
    const double move = (before - decoded(single.w().storage())[0]) / 1e-3;
    const double published = std::sqrt((1 - std::pow(0.999, 300)) / (1 - std::pow(0.999, 10))) *
                             (1 - std::pow(0.9, 10)) / (1 - std::pow(0.9, 300));
    // w is about 0.5: one rounding of it is 2^-25 / 1e-3 of the step.
    CHECK(move == doctest::Approx(form == WindowForm::kCorrected ? 1.0 : published).epsilon(1e-3));
  }
}

TEST_CASE("microadam: everything that ever came in is in the window, the past or the feedback") {
  // Sum of gradients = sum of all values ever kept + the feedback now, up to the rounding of codes.
  GroupSpec group = micro_group(8, WindowForm::kCorrected);
  group.rule.window = 200;
  const std::int64_t n = 64;
  Single single({n}, {}, group);
  std::vector<double> sum(static_cast<std::size_t>(n), 0.0);
  for (int t = 1; t <= 200; ++t) {
    const std::vector<float> grad = numbers(n, static_cast<std::uint32_t>(t));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(grad[i]);
    single.step(grad);
  }
  const auto index = single.plane<std::uint16_t>("w/microadam/index");
  const auto value = single.plane<std::uint16_t>("w/microadam/value");
  std::vector<double> kept = feedback(single, n, group.rule);
  for (std::size_t j = 0; j < index.size(); ++j) kept[index[j]] += from_bf16(value[j]);
  // Stochastic codes are unbiased: 200 errors of a uniform grid of unit <= 16 / 255 (residuals stay
  // within +-8 here) have a standard deviation of at most sqrt(200) unit / 2; five of them.
  const double bound = 5.0 * std::sqrt(200.0) * (16.0 / 255.0) / 2.0;
  for (std::size_t i = 0; i < sum.size(); ++i) CHECK(std::abs(kept[i] - sum[i]) <= bound);
}

TEST_CASE("microadam: equal magnitudes go to the lower index, in every run") {
  GroupSpec group = micro_group(0, WindowForm::kCorrected);
  Single single({3, 5000}, {}, group);  // runs of 3840 and 1160: 384 and 116 kept in each row
  std::vector<float> grad(15000, 0.25f);
  single.step(grad);
  const auto index = single.plane<std::uint16_t>("w/microadam/index");
  REQUIRE(index.size() == 4 * 3 * 500);
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t j = 0; j < 500; ++j) {
      CHECK(index[row * 500 + j] == (j < 384 ? j : j - 384));
    }
  }
}

TEST_CASE("microadam: bytes of state") {
  GroupSpec group;
  group.rule.kind = RuleKind::kMicroadam;
  const ParameterSpec spec{"w", Role::kWeight, {4096, 4096}, {}, {}};
  const double per = static_cast<double>(Optimizer::state_bytes(spec, group)) / (4096.0 * 4096.0);
  // .5 + 4 / 64 + 10 * 4 * ceil(40.96) / 4096
  CHECK(per == doctest::Approx(0.5 + 4.0 / 64.0 + 40.0 * 41.0 / 4096.0));
  CHECK(per <= 0.97);
}

TEST_CASE("microadam: a bucket of one number decodes to it exactly, and codes stay in range") {
  for (float x : {0.0f, 0.5f, -3.0f, 0x1p-100f, 0x1p100f}) {
    for (int bits = 2; bits <= 8; ++bits) {
      const std::vector<float> values(7, x);
      const FeedbackBounds bounds = feedback_bounds(values.data(), 7);
      CHECK(bounds.low == bounds.high);
      std::vector<std::uint8_t> codes(8, 0xFF);
      encode_feedback(codes.data(), 0, values.data(), 7, bits, bounds, 0.0f, nullptr);
      std::vector<float> out(7, 0.0f);
      add_decoded_feedback(out.data(), codes.data(), 0, 7, bits, bounds, 0.0f);
      CHECK(out == values);
    }
  }
  // Bounds that bf16 does not hold are rounded outwards, also for the largest floats.
  const std::vector<float> odd = {1.0009765625f, -1.0009765625f, 3.3e38f, -3.3e38f, 1e-40f};
  for (std::size_t i = 0; i < odd.size(); ++i) {
    const FeedbackBounds bounds = feedback_bounds(odd.data() + i, 1);
    CHECK(from_bf16(bounds.low) <= static_cast<double>(odd[i]));
    CHECK(from_bf16(bounds.high) >= static_cast<double>(odd[i]));
  }
}

TEST_CASE("microadam: settings outside their ranges are refused by name") {
  const auto refusal = [](const std::function<void(RuleSpec&)>& change) {
    RuleSpec spec;
    spec.kind = RuleKind::kMicroadam;
    change(spec);
    try {
      make_rule(spec);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal([](RuleSpec&) {}).empty());
  CHECK(refusal([](RuleSpec& s) { s.density = 0.0; }).find("density = 0 is outside") !=
        std::string::npos);
  CHECK(refusal([](RuleSpec& s) { s.density = 1.5; }).find("density = 1.5") != std::string::npos);
  CHECK(refusal([](RuleSpec& s) { s.density = NAN; }).find("density") != std::string::npos);
  CHECK(refusal([](RuleSpec& s) { s.window = 0; }).find("window = 0") != std::string::npos);
  for (int bits : {-1, 1, 9}) {
    const std::string sentence = "microadam: feedback_bits = " + std::to_string(bits) +
                                 " is neither 0 (no error feedback) nor 2 to 8";
    CHECK(refusal([&](RuleSpec& s) { s.feedback_bits = bits; }) == sentence);
    // The same from a recipe.
    const std::string set = "weight.feedback_bits=" + std::to_string(bits);
    CHECK_THROWS_WITH_AS(load_recipe("microadam", {set}),
                         ("recipe 'microadam', [weight]: " + sentence).c_str(), Error);
  }
  CHECK(refusal([](RuleSpec& s) { s.bucket = 1; }).find("bucket = 1") != std::string::npos);
  CHECK(refusal([](RuleSpec& s) { s.beta1 = 1.0; }).find("beta1 = 1") != std::string::npos);
  CHECK(refusal([](RuleSpec& s) { s.beta2 = -0.1; }).find("beta2") != std::string::npos);
  CHECK(refusal([](RuleSpec& s) { s.eps = -1e-8; }).find("eps = -1e-08") != std::string::npos);
}

}  // namespace tritgrad::test
