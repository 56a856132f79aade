#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "engine/check.h"
#include "tools/compare/record.h"

namespace tritgrad {
namespace {

// Nothing is worse than a run that diverged.
double worth_of(const TuningCandidate& candidate, Metric metric) {
  return candidate.val_score ? worth(*candidate.val_score, metric)
                             : -std::numeric_limits<double>::infinity();
}

}  // namespace

double next_factor(const std::vector<TuningCandidate>& tried, Metric metric) {
  constexpr std::array kFirst = {0.5, 1.0, 2.0};
  if (tried.size() < kFirst.size()) return kFirst[tried.size()];
  const std::size_t best = choose_candidate(tried, metric);
  // Where all diverged, the best is one of them, and lower rates are what is left.
  if (best == 0 || !tried[best].val_score) return tried.front().factor / 2.0;
  if (best + 1 == tried.size()) return tried.back().factor * 2.0;
  const TuningCandidate &below = tried[best - 1], &at = tried[best], &above = tried[best + 1];
  const double gap_below = std::log2(at.factor / below.factor);
  const double gap_above = std::log2(above.factor / at.factor);
  const bool upwards = std::abs(gap_above - gap_below) > 0.01
                           ? gap_above > gap_below
                           : worth_of(above, metric) > worth_of(below, metric);
  return std::sqrt(at.factor * (upwards ? above : below).factor);
}

void insert_by_factor(std::vector<TuningCandidate>& candidates, TuningCandidate candidate) {
  const auto place =
      std::find_if(candidates.begin(), candidates.end(),
                   [&](const TuningCandidate& c) { return c.factor > candidate.factor; });
  candidates.insert(place, std::move(candidate));
}

std::size_t choose_candidate(const std::vector<TuningCandidate>& candidates, Metric metric) {
  check(!candidates.empty(), "choose_candidate: there is no candidate; give at least one");
  const auto worth = [&](std::size_t i) {
    const TuningCandidate& candidate = candidates[i];
    return std::tuple(worth_of(candidate, metric), -std::abs(std::log2(candidate.factor)));
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    if (worth(i) > worth(best)) best = i;
  }
  return best;
}

std::string describe(const Tuning& tuning) {
  const TuningCandidate& choice = tuning.choice();
  return fmt::format("{:.3g} (× {:.3g}{})", choice.lr, choice.factor,
                     tuning.at_edge() ? ", edge" : "");
}

}  // namespace tritgrad
