#include "tools/study/study_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <span>

#include "tools/study/study_charts.h"

namespace tritgrad {
namespace {

std::string cell(double value) {
  return std::isfinite(value) ? fmt::format("{:.9g}", value) : std::string();
}

// Median, smallest and largest over seeds: three columns for each variant.
struct SpreadTable {
  std::string index;  // name of the first column
  std::vector<std::string> keys;
  std::vector<std::vector<Spread>> columns;

  void add(const Variant& variant, std::vector<Spread> spreads) {
    keys.push_back(variant_key(variant));
    columns.push_back(std::move(spreads));
  }

  // Rows are counted from `first` on; shorter columns end in empty cells.
  std::string text(std::size_t first) const {
    std::string csv = index;
    for (const std::string& key : keys) csv += fmt::format(",{0}_median,{0}_min,{0}_max", key);
    csv += "\n";
    std::size_t rows = 0;
    for (const auto& column : columns) rows = std::max(rows, column.size());
    for (std::size_t row = 0; row < rows; ++row) {
      csv += std::to_string(first + row);
      for (const auto& column : columns) {
        csv += row < column.size() ? fmt::format(",{},{},{}", cell(column[row].median),
                                                 cell(column[row].low), cell(column[row].high))
                                   : ",,,";
      }
      csv += "\n";
    }
    return csv;
  }
};

}  // namespace

std::string figure_csv(const StudyFigure& figure, const StudyResults& results) {
  SpreadTable table{"epoch", {}, {}};
  for (const Variant& variant : all_variants({figure})) {
    table.add(variant, epoch_spreads(results.of(variant)));
  }
  return table.text(1);
}

std::string autocorrelation_csv(const StudyFigure& figure, const StudyResults& results) {
  SpreadTable table{"lag", {}, {}};
  for (const Variant& variant : all_variants({figure})) {
    table.add(variant, autocorrelation_spreads(results.of(variant)));
  }
  return table.text(1);
}

std::string period_csv(const StudyResults& results) {
  SpreadTable table{"step_modulo_10", {}, {}};
  for (const StudyLine& line : period_lines()) {
    table.add(line.variant, turn_spreads(results.of(line.variant)));
  }
  return table.text(0);
}

std::string cost_csv(const std::vector<CostPoint>& costs) {
  std::string text =
      "parameters,rule,state_bytes,ledger_bytes,bytes_per_parameter,seconds_per_step,"
      "lower_quartile,upper_quartile,samples\n";
  for (const CostPoint& point : costs) {
    text += fmt::format("{},{},{},{},{},{},{},{},{}\n", point.parameters, point.rule,
                        point.state_bytes, point.ledger_bytes, cell(point.bytes_per_parameter()),
                        cell(point.seconds_per_step), cell(point.lower_quartile),
                        cell(point.upper_quartile), point.samples);
  }
  return text;
}

std::string numbers_csv(const StudyResults& results) {
  std::string text =
      "variant,seed,kept_share,end_loss,largest_rise,tremor,test_accuracy,update_length,"
      "loss_period_10,loss_noise,length_period_10,length_noise,turn_period_10,turn_noise,"
      "beat_epochs,beat_correlation,beat_noise,buckets,buckets_zero_at_start,buckets_written,"
      "buckets_constant,buckets_zero\n";
  for (const Variant& variant : all_variants(results.figures)) {
    const double kept = kept_share(variant);
    int seed = 0;
    for (const Curve& curve : results.of(variant)) {
      const CurveNumbers& n = curve.numbers;
      text += fmt::format("{},{}", variant_key(variant), ++seed);
      for (const double value : {kept, n.end_loss, n.largest_rise, std::expm1(n.roughness),
                                 n.test_accuracy, n.update_length, n.loss.ratio, n.loss.control,
                                 n.length.ratio, n.length.control, n.turn.ratio, n.turn.control,
                                 static_cast<double>(n.beat), n.beat_correlation, n.beat_noise}) {
        text += "," + cell(value);
      }
      const BucketCount& b = n.buckets;
      for (const std::int64_t count : {b.buckets, b.zero_at_start, b.written, b.constant, b.zero}) {
        text += fmt::format(",{}", count);
      }
      text += "\n";
    }
  }
  return text;
}

StudyFiles study_csv_files(const StudyResults& results) {
  StudyFiles files;
  for (const StudyFigure& figure : results.figures) {
    files.emplace_back(fmt::format("figure{}.csv", figure.number), figure_csv(figure, results));
    if (figure.number < 8) continue;
    files.emplace_back("autocorrelation.csv", autocorrelation_csv(figure, results));
  }
  files.emplace_back("figure8.csv", cost_csv(results.costs));
  files.emplace_back("period.csv", period_csv(results));
  files.emplace_back("numbers.csv", numbers_csv(results));
  return files;
}

void write_study(const std::filesystem::path& folder, const StudyFiles& files,
                 const FileCalls& calls) {
  std::deque<AtomicFile> written;
  for (const auto& [name, text] : files) {
    written.emplace_back(folder / name, calls).write(std::as_bytes(std::span(text)));
  }
  for (AtomicFile& file : written) file.sync();
  // Where the page is a link, what it names goes, and comes again in its place.
  std::error_code error;
  std::filesystem::remove(std::filesystem::weakly_canonical(folder / files.back().first), error);
  for (AtomicFile& file : written) file.commit();
}

}  // namespace tritgrad
