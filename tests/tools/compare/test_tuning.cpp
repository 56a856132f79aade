// Which learning rates are tried, and which is taken.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tools/compare/record.h"

namespace tritgrad::test::test_tuning {

TEST_CASE("tuning: from 1/2, 1 and 2 on to where the best lies, then between its neighbours") {
  // The factors in the order in which they are tried, where a rate is worth what `accuracy` says.
  const auto tried = [](int count, const auto& accuracy) {
    std::vector<TuningCandidate> candidates;
    std::vector<double> factors;
    for (int i = 0; i < count; ++i) {
      TuningCandidate candidate;
      candidate.factor = next_factor(candidates, Metric::kAccuracy);
      candidate.val_score = accuracy(candidate.factor);
      factors.push_back(candidate.factor);
      insert_by_factor(candidates, candidate);
    }
    CHECK(std::is_sorted(candidates.begin(), candidates.end(),
                         [](const auto& a, const auto& b) { return a.factor < b.factor; }));
    return factors;
  };
  using Accuracy = std::optional<double>;
  const auto peak_at = [](double peak) {
    return [peak](double factor) -> Accuracy {
      return 1.0 / (1.0 + std::abs(std::log2(factor / peak)));
    };
  };
  const double half_octave = std::sqrt(2.0);
  CHECK(tried(6, peak_at(8.0)) == std::vector<double>{0.5, 1, 2, 4, 8, 16});
  CHECK(tried(6, peak_at(0.1)) == std::vector<double>{0.5, 1, 2, 0.25, 0.125, 0.0625});
  // The better neighbour of 1 is 2; then the gap below is the wider one.
  CHECK(tried(5, peak_at(1.1)) == std::vector<double>{0.5, 1, 2, half_octave, std::sqrt(0.5)});
  CHECK(tried(5, [](double) -> Accuracy { return {}; }) ==
        std::vector<double>{0.5, 1, 2, 0.25, 0.125});
  CHECK(tried(5, [](double factor) -> Accuracy {
          return factor < 2 ? Accuracy(factor) : Accuracy();
        }) == std::vector<double>{0.5, 1, 2, std::sqrt(0.5), half_octave});
}

TEST_CASE("tuning: the best wins, ties go to the factor nearest 1, divergence never") {
  Metric metric = Metric::kAccuracy;
  const auto choose = [&](const std::vector<std::optional<double>>& scores) {
    std::vector<TuningCandidate> candidates;
    double factor = scores.size() < 4 ? 0.5 : 0.25;
    for (const std::optional<double>& score : scores) {
      candidates.push_back({factor, factor, score, 0, false});
      factor *= 2.0;
    }
    return candidates[choose_candidate(candidates, metric)].factor;
  };
  CHECK(choose({0.5, 0.6, 0.7}) == 2);
  CHECK(choose({0.7, 0.7, 0.7}) == 1);
  CHECK(choose({0.7, 0.6, 0.7}) == 0.5);
  CHECK(choose({0.8, 0.7, 0.7, 0.7, 0.8}) == 0.25);
  CHECK(choose({std::nullopt, std::nullopt, 0.0}) == 2);
  CHECK(choose({std::nullopt, std::nullopt, std::nullopt}) == 1);
  metric = Metric::kRmse;
  CHECK(choose({50.0, 60.0, 70.0}) == 0.5);
  CHECK(choose({std::nullopt, std::nullopt, 70.0}) == 2);
}

}  // namespace tritgrad::test::test_tuning
