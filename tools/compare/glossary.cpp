#include "tools/compare/glossary.h"

#include <algorithm>

namespace tritgrad {

Facts glossary(const std::vector<ComparisonRecord>& records) {
  const std::string base = records.empty() ? "the baseline" : records.front().baseline;
  const bool tuned =
      std::any_of(records.begin(), records.end(),
                  [](const ComparisonRecord& record) { return !record.tunings.empty(); });
  Facts facts{
      {{"accuracy %",
        "Mean over seeds ± sample standard deviation over seeds; with one cross-validated seed, "
        "over its folds. No ± where there is only one value. Seeds share their test rows, so that "
        "this is not the uncertainty of the accuracy on other data."},
       {"Δ " + base, "Points of accuracy above or below " + base + "."},
       {"95 % interval",
        tuned
            ? "Where that difference lies with 95 % confidence, from the scatter of both sides' "
              "seeds (Welch's t), given the chosen learning rates: it does not include that other "
              "held-out rows might have chosen others."
            : "Where that difference lies with 95 % confidence, from the scatter of both sides' "
              "seeds (Welch's t)."},
       {"bytes per parameter",
        "Everything that is kept while training, divided by the number of trained parameters: the "
        "sum of weights, scales, residual, moments and gradients."},
       {"× " + base, "Total bytes per parameter divided by those of " + base + "."},
       {"weights",
        "What inference reads: trits, codes, values, biases, gains, running statistics; for master "
        "the fp32 master itself, from which the ternary value is derived."},
       {"scales", "Scales of ternary groups."},
       {"residual",
        "What an update could not express in the weight: accumulators beside the trits."},
       {"moments", "Optimizer state."},
       {"gradients",
        "Gradient buffers that outlive their layer. Released gradients exist for one layer at a "
        "time and show in the peak memory only."},
       {"zeros", "Share of ternary weights that are zero at the end."},
       {"flips/step", "Ternary weights that changed their value, per optimizer step."},
       {"seconds per run",
        "Wall time of one run, its test included, when it was made; the median of all seeds."},
       {"peak memory",
        "Most bytes live at once, activations included and the data set left out; the largest of "
        "all seeds."},
       {"SHA-256 of the weights",
        "The same command on the same data and instruction set gives the same weights, whatever "
        "the number of threads."}},
      true};
  if (tuned) {
    facts.entries.push_back(
        {"learning rate",
         "That of the weights: the recipe's own times the factor in brackets, which did best with "
         "seed 1 on rows held out of the training rows, after as many epochs as a run has or as "
         "--tune-epochs says. Test rows played no part in the choice. "
         "The seeds then trained on all training rows. Edge: the lowest or highest rate tried."});
  }
  return facts;
}

}  // namespace tritgrad
