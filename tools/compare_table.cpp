#include "tools/compare_table.h"

#include "tools/summary.h"
#include "tools/table.h"

namespace tritgrad {

std::string render_compare_table(const std::vector<RunResult>& runs, const std::string& baseline) {
  const Comparison comparison = compare(runs, baseline);
  const bool tested = comparison.accuracy_name == "test accuracy";
  constexpr const char* kBytes = "bytes per parameter";
  Table table({{"recipe"},
               {tested ? "test acc %" : "val acc %", Align::kRight},
               {"Δ " + baseline, Align::kRight},
               {"weights", Align::kRight, kBytes},
               {"scales", Align::kRight, kBytes},
               {"residual", Align::kRight, kBytes},
               {"moments", Align::kRight, kBytes},
               {"gradients", Align::kRight, kBytes},
               {"total", Align::kRight, kBytes},
               {"× " + baseline, Align::kRight},
               {"s/epoch", Align::kRight},
               {"zeros", Align::kRight}});
  for (const RecipeSummary& summary : comparison.recipes) {
    const SummaryText text = describe(summary);
    table.add_row({summary.recipe, text.accuracy, text.delta, text.weights, text.scales,
                   text.residual, text.moments, text.gradients, text.total, text.ratio,
                   text.seconds_per_epoch, text.zeros});
  }
  return table.render();
}

}  // namespace tritgrad
