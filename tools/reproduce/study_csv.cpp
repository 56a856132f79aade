#include "tools/reproduce/study_csv.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "tools/reproduce/study_charts.h"

namespace tritgrad {
namespace {

std::string cell(double value) {
  return std::isfinite(value) ? fmt::format("{:.9g}", value) : std::string();
}

}  // namespace

std::string figure_csv(const StudyFigure& figure, const StudyResults& results) {
  std::string text = "epoch";
  std::vector<std::vector<double>> columns;
  std::set<std::string> seen;  // Adam stands in several panels
  for (const StudyPanel& panel : figure.panels) {
    for (const StudyLine& line : panel.lines) {
      const std::string key = variant_key(line.variant);
      if (!seen.insert(key).second) continue;
      text += "," + key;
      columns.push_back(median_curve(results.of(line.variant)));
    }
  }
  text += "\n";
  for (std::size_t epoch = 0; epoch < static_cast<std::size_t>(results.options.epochs); ++epoch) {
    text += std::to_string(epoch + 1);
    for (const std::vector<double>& column : columns) text += "," + cell(column[epoch]);
    text += "\n";
  }
  return text;
}

std::string period_csv(const StudyResults& results) {
  const std::vector<StudyLine> lines = period_lines();
  std::string text = "step_modulo_10";
  for (const StudyLine& line : lines) text += "," + variant_key(line.variant);
  text += "\n";
  for (std::size_t phase = 0; phase < static_cast<std::size_t>(kStudyPeriod); ++phase) {
    text += std::to_string(phase);
    for (const StudyLine& line : lines) {
      text += "," + cell(median(results.numbers(line.variant, [&](const CurveNumbers& numbers) {
                return numbers.turn_profile[phase];
              })));
    }
    text += "\n";
  }
  return text;
}

std::string cost_csv(const std::vector<CostPoint>& costs) {
  std::string text =
      "parameters,rule,bytes_per_parameter,seconds_per_step,lower_quartile,upper_quartile\n";
  for (const CostPoint& point : costs) {
    text += fmt::format("{},{},{},{},{},{}\n", point.parameters, point.rule,
                        cell(point.bytes_per_parameter()), cell(point.seconds_per_step),
                        cell(point.lower_quartile), cell(point.upper_quartile));
  }
  return text;
}

std::string numbers_csv(const StudyResults& results) {
  std::string text =
      "variant,seed,end_loss,largest_rise,roughness,test_accuracy,loss_period_10,loss_noise,"
      "length_period_10,length_noise,turn_period_10,turn_noise,beat_epochs,beat_correlation,beat_"
      "noise\n";
  for (const auto& [key, curves] : results.curves) {
    int seed = 0;
    for (const Curve& curve : curves) {
      const CurveNumbers& n = curve.numbers;
      text += fmt::format("{},{}", key, ++seed);
      for (const double value :
           {n.end_loss, n.largest_rise, n.roughness, n.test_accuracy, n.loss.ratio, n.loss.control,
            n.length.ratio, n.length.control, n.turn.ratio, n.turn.control,
            static_cast<double>(n.beat), n.beat_correlation, n.beat_noise}) {
        text += "," + cell(value);
      }
      text += "\n";
    }
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> study_csv_files(const StudyResults& results) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const StudyFigure& figure : results.figures) {
    files.emplace_back(fmt::format("figure{}.csv", figure.number), figure_csv(figure, results));
  }
  files.emplace_back("figure8.csv", cost_csv(results.costs));
  files.emplace_back("period.csv", period_csv(results));
  files.emplace_back("numbers.csv", numbers_csv(results));
  return files;
}

}  // namespace tritgrad
