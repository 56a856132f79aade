#include <fmt/format.h>

#include <cmath>

#include "tools/compare/summary.h"
#include "tools/report/numbers.h"

namespace tritgrad {
namespace {

// A loss of so many points of accuracy is what an interval has to rule out (a margin of
// non-inferiority): that no loss was found would speak for the recipes with the widest intervals.
constexpr double kMargin = 0.5;

bool smaller_than_baseline(const RecipeSummary& summary) {
  // A few bytes less are no saving that anybody would give up accuracy for.
  constexpr double kWorthMentioning = 0.9;
  return !summary.is_baseline && summary.bytes_ratio && *summary.bytes_ratio < kWorthMentioning;
}

// "loses 0.42 points of test accuracy against master (95 % interval −0.60 … −0.24)", or "cannot be
// told from master in test accuracy (+0.29 points, 95 % interval −2.61 … +3.20)"
std::string verdict(const RecipeSummary& summary, const Comparison& comparison) {
  const double delta = *summary.delta_points;
  if (summary.delta_interval && summary.delta_interval->contains(0.0)) {
    return fmt::format("cannot be told from {} in {} ({} points, 95 % interval {})",
                       comparison.baseline, comparison.accuracy_name, describe(summary).delta,
                       describe(*summary.delta_interval));
  }
  const std::string size = fixed(std::abs(delta), 2);
  std::string text =
      size == "0.00"
          ? fmt::format("has the {} of {}", comparison.accuracy_name, comparison.baseline)
          : fmt::format("{} {} points of {} against {}", delta < 0 ? "loses" : "gains", size,
                        comparison.accuracy_name, comparison.baseline);
  if (!summary.delta_interval) return text;
  return text + fmt::format(" (95 % interval {})", describe(*summary.delta_interval));
}

// "3 seeds", or "1 of 3 seeds, as the others diverged".
std::string seeds_of(const RecipeSummary& summary) {
  const std::string all = counted(summary.seeds, "seed");
  return summary.diverged == 0 ? all
                               : fmt::format("{} of {}, as the others diverged",
                                             summary.seeds - summary.diverged, all);
}

// Where nothing is smaller than the baseline.
std::string most_accurate(const Comparison& comparison) {
  const RecipeSummary* best = nullptr;
  for (const RecipeSummary& summary : comparison.recipes) {
    if (summary.accuracy && (!best || summary.accuracy->mean > best->accuracy->mean)) {
      best = &summary;
    }
  }
  if (!best) {
    for (const RecipeSummary& summary : comparison.recipes) {
      if (!summary.trained()) continue;
      return fmt::format("{} trains with {} bytes per parameter.", summary.recipe,
                         describe(summary).total);
    }
    return "Every run diverged.";
  }
  return fmt::format("{} reaches {} % {} with {} bytes per parameter ({}).", best->recipe,
                     describe(*best->accuracy), comparison.accuracy_name, describe(*best).total,
                     seeds_of(*best));
}

// "latent6, at 0.80 bytes per parameter instead of 16.01, is the smallest whose 95 % interval rules
// out a loss of 0.5 points against master:"
std::string within_margin(const RecipeSummary& summary, const RecipeSummary& baseline,
                          const Comparison& comparison) {
  return fmt::format(
      "{}, at {} bytes per parameter instead of {}, is the smallest whose 95 % interval rules out "
      "a loss of {} points against {}: {} {} % against {} % (difference {} points, interval {}, "
      "{}).",
      summary.recipe, describe(summary).total, describe(baseline).total, fixed(kMargin, 1),
      comparison.baseline, comparison.accuracy_name, fixed(100.0 * summary.accuracy->mean, 2),
      fixed(100.0 * baseline.accuracy->mean, 2), describe(summary).delta,
      describe(*summary.delta_interval), seeds_of(summary));
}

// Those of the smaller recipes that a headline speaks of; null where there is none.
struct Outstanding {
  // With all of its interval above a loss of kMargin.
  const RecipeSummary* smallest_within = nullptr;
  const RecipeSummary* best = nullptr;
  const RecipeSummary* smallest = nullptr;
};

Outstanding outstanding(const Comparison& comparison) {
  Outstanding out;
  const auto keep_smaller = [](const RecipeSummary*& kept, const RecipeSummary& summary) {
    if (!kept || summary.bytes.total() < kept->bytes.total()) kept = &summary;
  };
  for (const RecipeSummary& summary : comparison.recipes) {
    if (!smaller_than_baseline(summary) || !summary.delta_points) continue;
    if (!out.best || *summary.delta_points > *out.best->delta_points) out.best = &summary;
    keep_smaller(out.smallest, summary);
    if (summary.delta_interval && summary.delta_interval->low > -kMargin) {
      keep_smaller(out.smallest_within, summary);
    }
  }
  return out;
}

}  // namespace

std::string headline(const Comparison& comparison) {
  if (comparison.recipes.empty()) return "No runs to compare.";
  const auto [smallest_within, best, smallest] = outstanding(comparison);
  if (!best) return most_accurate(comparison);
  const RecipeSummary& baseline = comparison.recipes.front();
  std::string text;
  bool best_is_told = true;
  if (smallest_within) {
    text = within_margin(*smallest_within, baseline, comparison);
    best_is_told = *best->delta_points > *smallest_within->delta_points;
    if (best_is_told) {
      text += fmt::format(" The most accurate of all that are smaller than {}, {} at {} bytes, {}.",
                          comparison.baseline, best->recipe, describe(*best).total,
                          verdict(*best, comparison));
    }
  } else {
    text = fmt::format("{} {}, with {} bytes per parameter instead of {} ({} % against {} %, {}).",
                       best->recipe, verdict(*best, comparison), describe(*best).total,
                       describe(baseline).total, fixed(100.0 * best->accuracy->mean, 2),
                       fixed(100.0 * baseline.accuracy->mean, 2), seeds_of(*best));
  }
  if (smallest != smallest_within && !(best_is_told && smallest == best)) {
    text += fmt::format(" The smallest, {} at {} bytes, {}.", smallest->recipe,
                        describe(*smallest).total, verdict(*smallest, comparison));
  }
  return text;
}

}  // namespace tritgrad
