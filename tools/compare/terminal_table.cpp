#include "tools/compare/terminal_table.h"

#include "tools/compare/summary.h"
#include "tools/report/table.h"

namespace tritgrad {

std::string render_terminal_table(const ComparisonRecord& record) {
  const Comparison comparison = compare(record.runs, record.baseline);
  const bool tested = comparison.accuracy_name == "test accuracy";
  constexpr const char* kBytes = "bytes per parameter";
  std::vector<Column> columns = {{"recipe"},
                                 {tested ? "test acc %" : "val acc %", Align::kRight},
                                 {"Δ " + comparison.baseline, Align::kRight},
                                 {"95 % interval", Align::kRight},
                                 {"weights", Align::kRight, kBytes},
                                 {"scales", Align::kRight, kBytes},
                                 {"residual", Align::kRight, kBytes},
                                 {"moments", Align::kRight, kBytes},
                                 {"gradients", Align::kRight, kBytes},
                                 {"total", Align::kRight, kBytes},
                                 {"× " + comparison.baseline, Align::kRight},
                                 {"zeros", Align::kRight},
                                 {"s/run", Align::kRight},
                                 {"peak memory", Align::kRight}};
  const bool tuned = !record.tunings.empty();
  if (tuned) columns.push_back({"learning rate", Align::kRight});
  Table table(columns);
  for (const RecipeSummary& summary : comparison.recipes) {
    const SummaryText text = describe(summary);
    std::vector<std::string> cells = {
        text.recipe, text.accuracy, text.delta,           text.interval,  text.weights,
        text.scales, text.residual, text.moments,         text.gradients, text.total,
        text.ratio,  text.zeros,    text.seconds_per_run, text.peak};
    if (tuned) {
      const Tuning* tuning = record.tuning_of(summary.recipe);
      cells.push_back(tuning != nullptr ? describe(*tuning) : kMissing);
    }
    table.add_row(cells);
  }
  std::string text = table.render();
  for (const std::string& note : footnotes(comparison)) text += note + "\n";
  return text;
}

}  // namespace tritgrad
