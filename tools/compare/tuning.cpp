#include "tools/compare/tuning.h"

#include <fmt/format.h>

#include <cmath>
#include <tuple>

#include "engine/check.h"

namespace tritgrad {

std::vector<double> tuning_factors(int count) {
  check(count >= 1, "tuning_factors: ", count, " rates, expected at least 1");
  std::vector<double> factors;
  for (int i = 0; i < count; ++i) factors.push_back(std::exp2(i - count / 2));
  return factors;
}

std::size_t choose_candidate(const std::vector<TuningCandidate>& candidates) {
  check(!candidates.empty(), "choose_candidate: there is no candidate; give at least one");
  const auto worth = [&](std::size_t i) {
    const TuningCandidate& candidate = candidates[i];
    return std::tuple(candidate.val_accuracy.value_or(-1.0),
                      -std::abs(std::log2(candidate.factor)));
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    if (worth(i) > worth(best)) best = i;
  }
  return best;
}

std::string describe(const Tuning& tuning) {
  const TuningCandidate& choice = tuning.choice();
  return fmt::format("{:g} (× {:g}{})", choice.lr, choice.factor, tuning.at_edge() ? ", edge" : "");
}

}  // namespace tritgrad
