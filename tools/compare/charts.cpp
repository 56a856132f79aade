#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "tools/compare/report.h"
#include "tools/report/svg.h"

namespace tritgrad {
namespace {

using PointValue = std::function<double(const EpochPoint&)>;
constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();
// A loss that falls further than this is drawn on a logarithmic axis.
constexpr double kLogRatio = 20;

// The mean over the seeds of a recipe at each epoch, with a band from the lowest to the highest
// seed where there are several.
LineSeries mean_curve(const std::vector<RunResult>& runs, const std::string& recipe,
                      const PointValue& value_of) {
  std::map<double, std::vector<double>> epochs;
  for (const RunResult& run : runs) {
    if (run.recipe != recipe) continue;
    for (const EpochPoint& point : run.curve) {
      const double value = value_of(point);
      if (std::isfinite(value) && std::isfinite(point.epoch)) epochs[point.epoch].push_back(value);
    }
  }
  const bool several = std::any_of(epochs.begin(), epochs.end(),
                                   [](const auto& epoch) { return epoch.second.size() > 1; });
  LineSeries series;
  series.name = recipe;
  for (const auto& [epoch, values] : epochs) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    series.x.push_back(epoch);
    series.y.push_back(std::accumulate(values.begin(), values.end(), 0.0) /
                       static_cast<double>(values.size()));
    if (!several) continue;
    series.lower.push_back(*low);
    series.upper.push_back(*high);
  }
  return series;
}

LineChart curves(const std::vector<RunResult>& runs, const Comparison& comparison,
                 const std::string& label, const PointValue& value_of) {
  LineChart chart{label + " by epoch", {"epoch"}, {label}, {}};
  for (std::size_t i = 0; i < comparison.recipes.size(); ++i) {
    LineSeries series = mean_curve(runs, comparison.recipes[i].recipe, value_of);
    if (series.x.empty()) continue;
    series.style = static_cast<int>(i);  // the baseline is first: 0, the colour of the text
    chart.series.push_back(std::move(series));
  }
  return chart;
}

bool wants_log(const LineChart& chart) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const LineSeries& series : chart.series) {
    for (const std::vector<double>* values : {&series.y, &series.lower}) {
      for (const double value : *values) {
        low = std::min(low, value);
        high = std::max(high, value);
      }
    }
  }
  return low > 0 && high > kLogRatio * low;
}

void add_curves(std::vector<Figure>& figures, const std::string& name, const LineChart& chart,
                const std::string& caption) {
  bool banded = false, moves = false;
  for (const LineSeries& series : chart.series) {
    banded |= !series.lower.empty();
    moves |= series.x.size() > 1;
  }
  if (!moves) return;  // one epoch is a point, which is in the tables
  figures.push_back({name, caption + (banded ? " Mean over seeds; the band spans all seeds." : ""),
                     render_svg(chart)});
}

const char* axis_unit(const ScoreUnit& unit) {
  return unit.metric == Metric::kAccuracy ? ", %" : "";
}

void add_scatter(std::vector<Figure>& figures, const Comparison& comparison) {
  const ScoreUnit& unit = comparison.unit;
  const bool errors = !higher_is_better(unit.metric);
  ScatterChart chart{comparison.score_name + " against bytes per parameter",
                     {"bytes per parameter"},
                     {comparison.score_name + axis_unit(unit)},
                     {}};
  double least = std::numeric_limits<double>::infinity();
  bool spread = false;
  for (std::size_t i = 0; i < comparison.recipes.size(); ++i) {
    const RecipeSummary& recipe = comparison.recipes[i];
    if (!recipe.score) continue;
    ScatterPoint point{recipe.recipe, static_cast<int>(i), recipe.bytes.total(),
                       unit.written(recipe.score->mean), std::nullopt};
    if (recipe.score->spread) {
      point.y_spread = unit.written(*recipe.score->spread);
      spread = true;
    }
    least = std::min(least, point.x);
    chart.points.push_back(std::move(point));
  }
  if (chart.points.size() < 2) return;
  chart.x.log = least > 0;
  for (const std::size_t i : pareto_front(comparison)) {
    chart.front.push_back(
        {comparison.recipes[i].bytes.total(), unit.written(comparison.recipes[i].score->mean)});
  }
  figures.push_back({"pareto",
                     fmt::format("What {} costs: {} and to the left is better. The line is the "
                                 "Pareto front: nothing lies {} it.",
                                 errors ? "a small error" : "accuracy", errors ? "down" : "up",
                                 errors ? "below" : "above") +
                         std::string(spread ? " Bars are one standard deviation." : "") +
                         (chart.x.log ? " Logarithmic bytes." : ""),
                     render_svg(chart)});
}

void add_bars(std::vector<Figure>& figures, const Comparison& comparison) {
  StackedBars chart{
      "Bytes per parameter by category", "bytes per parameter while training", {}, {}};
  for (const ByteCategory& category : kByteCategories) chart.categories.push_back(category.name);
  for (const RecipeSummary& recipe : comparison.recipes) {
    if (!recipe.trained()) continue;
    Bar& bar = chart.bars.emplace_back(Bar{recipe.recipe, {}});
    for (const ByteCategory& category : kByteCategories) {
      bar.parts.push_back(recipe.bytes.*category.bytes);
    }
  }
  figures.push_back({"bytes",
                     "Where the bytes go. Activations and the dataset are not counted here.",
                     render_svg(chart)});
}

// Seeds of a tuned comparison train on all training rows: what their recipes do on rows held out
// is known of the trials that chose the rates.
std::vector<RunResult> chosen_trials(const ComparisonRecord& record) {
  std::vector<RunResult> trials;
  for (const Tuning& tuning : record.tunings) {
    RunResult& trial = trials.emplace_back();
    trial.recipe = tuning.recipe;
    trial.curve = tuning.choice().curve;
  }
  return trials;
}

}  // namespace

std::vector<Figure> draw_charts(const ComparisonRecord& record, const Comparison& comparison,
                                const std::string& prefix) {
  const std::vector<RunResult>& runs = record.runs;
  std::vector<Figure> figures;
  if (comparison.recipes.empty()) return figures;
  add_scatter(figures, comparison);
  add_bars(figures, comparison);
  LineChart loss = curves(runs, comparison, "training loss",
                          [](const EpochPoint& point) { return point.train_loss; });
  loss.y.log = wants_log(loss);
  const std::string scale = loss.y.log ? " Logarithmic loss." : "";
  const bool smoothed = runs.front().label_smoothing > 0;
  add_curves(figures, "loss", loss,
             smoothed ? "Loss on the training data, against smoothed labels." + scale
                      : "Loss on the training data." + scale);
  const ScoreUnit& unit = comparison.unit;
  const std::string score(to_text(unit.metric));
  const std::string caption = unit.metric == Metric::kAccuracy ? "Accuracy" : score;
  add_curves(figures, "training-" + std::string(key_name(unit.metric)),
             curves(runs, comparison, "training " + score + axis_unit(unit),
                    [&](const EpochPoint& point) { return unit.written(point.train_score); }),
             caption + " on the training data.");
  const bool tuned = !record.tunings.empty();
  add_curves(
      figures, "validation-" + std::string(key_name(unit.metric)),
      curves(
          tuned ? chosen_trials(record) : runs, comparison, "validation " + score + axis_unit(unit),
          [&](const EpochPoint& point) { return unit.written(point.val_score.value_or(kAbsent)); }),
      caption + (tuned ? " on data not trained on, of the trials that chose the learning rates."
                       : " on data not trained on."));
  for (Figure& figure : figures) figure.name = prefix + figure.name;
  return figures;
}

}  // namespace tritgrad
