// What the sampler draws, how often, and what it refuses.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "models/generation/sampler.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_sampler {
namespace {

// Probabilities 0.1, 0.4, 0.2, 0.3.
const std::vector<float> kLogits{std::log(1.0f), std::log(4.0f), std::log(2.0f), std::log(3.0f)};
constexpr int kDraws = 20000;

// Returns the share of draws of each token.
std::array<double, 4> shares(const SamplerSpec& spec) {
  Sampler sampler(spec);
  std::array<double, 4> counts{};
  for (int i = 0; i < kDraws; ++i) ++counts.at(static_cast<std::size_t>(sampler.next(kLogits)));
  for (double& count : counts) count /= kDraws;
  return counts;
}

// Five standard deviations of a share p of kDraws draws.
void check_share(double share, double p) {
  CAPTURE(p);
  CHECK(std::abs(share - p) <= 5.0 * std::sqrt(p * (1.0 - p) / kDraws));
}

}  // namespace

TEST_CASE("sampler: tokens come as often as their probabilities say") {
  const auto all = shares({.temperature = 1.0});
  for (std::size_t i = 0; i < 4; ++i) check_share(all[i], std::array{0.1, 0.4, 0.2, 0.3}[i]);
  // Squared and made to sum to 1.
  const auto cold = shares({.temperature = 0.5});
  for (std::size_t i = 0; i < 4; ++i)
    check_share(cold[i], std::array{1.0, 16.0, 4.0, 9.0}[i] / 30.0);
}

TEST_CASE("sampler: top-k and top-p leave the most likely tokens") {
  const auto two = shares({.temperature = 1.0, .top_k = 2});
  check_share(two[1], 4.0 / 7.0);
  check_share(two[3], 3.0 / 7.0);
  CHECK(two[0] + two[2] == 0.0);
  // 0.4 + 0.3 are not yet 0.75: the third is needed, too.
  const auto three = shares({.temperature = 1.0, .top_p = 0.75});
  CHECK(three[0] == 0.0);
  check_share(three[2], 2.0 / 9.0);
  const auto one = shares({.temperature = 1.0, .top_p = 1e-9});
  CHECK(one[1] == 1.0);
}

TEST_CASE(
    "sampler: at temperature 0 always the first of the most likely, and a seed has its draws") {
  Sampler greedy({.temperature = 0.0});
  const std::vector<float> equal{1.0f, 2.0f, 2.0f};
  for (int i = 0; i < 5; ++i) CHECK(greedy.next(equal) == 1);
  Sampler a({.seed = 3}), b({.seed = 3}), c({.seed = 4});
  int differences = 0;
  for (int i = 0; i < 100; ++i) {
    const std::int32_t drawn = a.next(kLogits);
    CHECK(b.next(kLogits) == drawn);
    differences += c.next(kLogits) != drawn;
  }
  CHECK(differences > 0);
}

TEST_CASE("sampler: numbers out of range and logits that are no numbers are refused") {
  CHECK(contains(refusal([] { Sampler({.temperature = -1.0}); }), "temperature -1 found"));
  CHECK(contains(refusal([] { Sampler({.temperature = std::nan("")}); }), "temperature nan found"));
  CHECK(contains(refusal([] { Sampler({.top_k = -1}); }), "top-k -1 found"));
  for (const double p : {0.0, -0.5, 1.5, std::nan("")}) {
    CHECK(contains(refusal([p] { Sampler({.top_p = p}); }), "above 0 and at most 1"));
  }
  Sampler sampler({});
  const std::vector<float> broken{0.0f, std::numeric_limits<float>::quiet_NaN()};
  CHECK(contains(refusal([&] { sampler.next(broken); }), "not finite"));
}

}  // namespace tritgrad::test::test_sampler
