// The study as pictures, tables and CSV files, on a few epochs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "engine/data/open_dataset.h"
#include "engine/memory/parallel.h"
#include "tests/support/markup_balance.h"
#include "tests/support/support_files.h"
#include "tools/report/statistics.h"
#include "tools/study/study_files.h"

namespace tritgrad::test::test_reproduce {
namespace {

constexpr int kEpochs = 20;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// All runs are made once for all test cases.
const StudyResults& small_study() {
  static const StudyResults results = [] {
    StudyResults made = run_study(study_figures(), {.epochs = kEpochs, .seeds = 2, .quiet = true});
    made.costs = measure_costs({1000, 10000}, 7);
    return made;
  }();
  return results;
}

std::vector<std::vector<std::string>> cells_of(const std::string& csv) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back();
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) rows.back().push_back(field);
  }
  return rows;
}

// Results in which every epoch of every curve has the same loss.
StudyResults made_up(double loss) {
  StudyResults results{{.epochs = 4, .seeds = 3, .quiet = true}, study_figures(), {}, {}, 0.0};
  Curve curve{{loss, loss, loss, loss}, {}};
  curve.numbers = measure_curve(curve.epoch_loss, {});
  for (const Variant& variant : all_variants(results.figures)) {
    results.curves[variant_key(variant)] = {curve, curve, curve};
  }
  return results;
}

// The contents of one file of a study; empty if there is none.
std::string file_of(const StudyResults& results, const std::string& name) {
  for (const auto& [known, text] : study_files(results, "")) {
    if (known == name) return text;
  }
  return "";
}

}  // namespace

TEST_CASE("reproduce: curves have one loss for each epoch and are the same for any threads") {
  const Variant variant{"iris", Form::kStudy, 0.1, 4};
  const Dataset dataset = builtin_dataset("iris");
  set_thread_count(1);
  const Curve one = train_curve(dataset, variant, kEpochs, 2);
  set_thread_count(0);
  CHECK(one.epoch_loss.size() == kEpochs);
  CHECK(one.epoch_loss == small_study().of(variant)[1].epoch_loss);
  CHECK(one.epoch_loss != small_study().of(variant)[0].epoch_loss);
  CHECK(one.epoch_loss.back() < one.epoch_loss.front());
}

TEST_CASE("reproduce: every variant is a run of its own") {
  const std::vector<Variant> variants = all_variants(study_figures());
  std::set<std::string> keys;
  std::set<std::string> recipes;
  for (const Variant& variant : variants) {
    keys.insert(variant_key(variant));
    recipes.insert(variant_recipe(variant).toml);
  }
  CHECK(keys.size() == variants.size());
  CHECK(recipes.size() == variants.size());  // the name alone tells raw data and data sets apart
  CHECK(small_study().curves.size() == variants.size());
}

TEST_CASE("reproduce: what a row keeps is counted by tensor") {
  // 4-8-3: tensors of 32, 8, 24 and 3 elements; 1 % of each is one element.
  CHECK(kept_share({"iris", Form::kStudy, 0.01, 4}) == doctest::Approx(4.0 / 67));
  CHECK(kept_share({"iris", Form::kStudy, 0.1, 4}) == doctest::Approx((4.0 + 1 + 3 + 1) / 67));
  CHECK(kept_share({"wdbc", Form::kCorrected, 1.0, 0}) == 1.0);
}

TEST_CASE("reproduce: buckets are counted in every step, and only where there are any") {
  const Variant variant{"iris", Form::kCorrected, 0.01, 4};
  const BucketCount count = small_study().of(variant)[0].numbers.buckets;
  CHECK(count.buckets == 4);  // tensors of 32, 8, 24 and 3 elements
  CHECK(count.zero_at_start == 4);
  CHECK(count.written == 4 * 8 * kEpochs);
  CHECK(count.constant <= count.written);
  CHECK(count.zero <= count.constant);
  CHECK(small_study().of({"iris", Form::kCorrected, 0.01, 0})[0].numbers.buckets.buckets == 0);
}

TEST_CASE("reproduce: a figure's CSV has three columns for each variant and a row for each epoch") {
  for (const StudyFigure& figure : study_figures()) {
    CAPTURE(figure.number);
    const auto rows =
        cells_of(file_of(small_study(), "figure" + std::to_string(figure.number) + ".csv"));
    REQUIRE(rows.size() == 1 + kEpochs);
    CHECK(rows[0][0] == "epoch");
    std::set<std::string> expected;
    for (const Variant& variant : all_variants({figure})) {
      for (const char* what : {"_median", "_min", "_max"}) {
        expected.insert(variant_key(variant) + what);
      }
    }
    CHECK(std::set<std::string>(rows[0].begin() + 1, rows[0].end()) == expected);
    for (std::size_t i = 1; i < rows.size(); ++i) {
      REQUIRE(rows[i].size() == rows[0].size());
      CHECK(rows[i][0] == std::to_string(i));
    }
    const Variant& first = figure.panels[0].lines[0].variant;
    const std::vector<Curve>& curves = small_study().of(first);
    const double one = curves[0].epoch_loss.back(), other = curves[1].epoch_loss.back();
    CHECK(std::stod(rows[kEpochs][1]) == doctest::Approx(0.5 * (one + other)).epsilon(1e-8));
    CHECK(std::stod(rows[kEpochs][2]) == doctest::Approx(std::min(one, other)).epsilon(1e-8));
    CHECK(std::stod(rows[kEpochs][3]) == doctest::Approx(std::max(one, other)).epsilon(1e-8));
  }
}

TEST_CASE("reproduce: the other CSV files") {
  std::set<std::string> names;
  for (const auto& [name, text] : study_files(small_study(), "")) {
    if (name.ends_with(".csv")) CHECK(names.insert(name).second);
  }
  CHECK(names == std::set<std::string>{"figure3.csv", "figure4.csv", "figure5.csv", "figure6.csv",
                                       "figure7.csv", "figure8.csv", "figure9.csv",
                                       "autocorrelation.csv", "period.csv", "numbers.csv"});
  const auto costs = cells_of(file_of(small_study(), "figure8.csv"));
  CHECK(costs[0] == std::vector<std::string>{"parameters", "rule", "state_bytes", "ledger_bytes",
                                             "bytes_per_parameter", "seconds_per_step",
                                             "lower_quartile", "upper_quartile", "samples"});
  CHECK(costs.size() == 1 + 2 * 2);
  CHECK(cells_of(file_of(small_study(), "period.csv")).size() == 1 + 10);

  // Breast Cancer's 29 steps an epoch meet the window every ten epochs, Iris's eight every five:
  // four times that.
  const StudyFigure figure = study_figures().back();
  const auto lags = cells_of(file_of(small_study(), "autocorrelation.csv"));
  REQUIRE(lags.size() == 1 + 40);
  const StudyLine& line = figure.panels[2].lines[0];
  const auto at = std::find(lags[0].begin(), lags[0].end(), variant_key(line.variant) + "_max");
  REQUIRE(at != lags[0].end());
  const std::vector<Curve>& curves = small_study().of(line.variant);
  CHECK(std::stod(lags[7][static_cast<std::size_t>(at - lags[0].begin())]) ==
        doctest::Approx(
            std::max(curves[0].numbers.autocorrelation[6], curves[1].numbers.autocorrelation[6])));

  const auto numbers = cells_of(file_of(small_study(), "numbers.csv"));
  REQUIRE(numbers.size() == 1 + 2 * all_variants(study_figures()).size());
  REQUIRE(numbers[0][2] == "kept_share");
  std::size_t found = 0;
  for (const auto& row : numbers) {
    REQUIRE(row.size() == numbers[0].size());
    if (row[0] != "iris/study/density=1%/feedback=4bit") continue;
    CHECK(std::stod(row[2]) == doctest::Approx(4.0 / 67));
    CHECK(row.back() != "");
    ++found;
  }
  CHECK(found == 2);
}

TEST_CASE("reproduce: a value that is not finite is an empty cell") {
  StudyResults results = made_up(kNan);
  for (auto& [key, curves] : results.curves) {
    for (Curve& curve : curves) curve.epoch_loss.back() = kNan;
  }
  const std::string csv = file_of(results, "figure3.csv");
  CHECK(csv.ends_with("\n4" + std::string(std::size_t{3} * 12, ',') + "\n"));
  const std::string html = file_of(results, "index.html");
  CHECK_FALSE(std::regex_search(html, std::regex("\\b(nan|inf)\\b")));
  CHECK(markup_error(html) == "");
}

TEST_CASE("reproduce: the marker of a curve is its loss at the end") {
  StudyResults results = made_up(0.25);
  const StudyFigure& figure = results.figures[0];
  for (Curve& curve : results.curves.at(variant_key(figure.panels[0].lines[1].variant))) {
    curve.epoch_loss.back() = 0.26;
    curve.numbers.end_loss = end_loss(curve.epoch_loss);
  }
  const StudyLine& line = figure.panels[0].lines[1];
  const double end =
      median(results.numbers(line.variant, [](const CurveNumbers& n) { return n.end_loss; }));
  CHECK(end == doctest::Approx(0.25 * std::pow(1.04, 0.25)));  // one epoch of four is 1.04 times
  CHECK(contains(file_of(results, "index.html"), "0.252 (0.252 to 0.252)"));
  // A curve whose last epoch goes up has its marker below its end.
  const std::string after = file_of(results, "figure3-1.svg");
  const std::regex marker("class=\"mark tg-s1\" transform=\"translate\\(([0-9.]+) ([0-9.]+)");
  const std::regex curve("class=\"curve tg-s1\"[^>]*L([0-9.]+) ([0-9.]+)\"");
  std::smatch marked, drawn;
  REQUIRE(std::regex_search(after, marked, marker));
  REQUIRE(std::regex_search(after, drawn, curve));
  CHECK(marked[1] == drawn[1]);
  CHECK(std::stod(marked[2]) > std::stod(drawn[2]) + 1.0);
}

TEST_CASE("reproduce: bytes of state are formula and ledger alike") {
  for (const CostPoint& point : small_study().costs) {
    CAPTURE(point.rule);
    CHECK(point.state_bytes == point.ledger_bytes);
    CHECK(point.seconds.median > 0.0);
    CHECK(point.samples == 7);
    CHECK(point.seconds.low <= point.seconds.median);
    CHECK(point.seconds.high >= point.seconds.median);
  }
  CHECK(small_study().costs[0].bytes_per_parameter() ==
        doctest::Approx(8.0).epsilon(0.01));  // and a counter
  CHECK(small_study().costs[3].bytes_per_parameter() < 4.0);
}

TEST_CASE("reproduce: the page is well formed, complete and loads nothing") {
  const StudyFiles files = study_files(small_study(), "tritgrad reproduce <x>");
  REQUIRE(files.back().first == "index.html");
  const std::string& html = files.back().second;
  CHECK(markup_error(html) == "");
  for (const char* part : {"<script", "<link", "<img", "src=", "href=", "url(", "@import"}) {
    CHECK_FALSE(contains(html, part));
  }
  std::size_t charts = 0;
  for (std::size_t at = 0; (at = html.find("<svg", at)) != std::string::npos; ++at) ++charts;
  std::size_t panels = 2 + 2 + 2;  // density, period, cost
  for (const StudyFigure& figure : study_figures()) panels += figure.panels.size();
  CHECK(charts == panels);
  std::set<std::string> names;
  for (const auto& [name, text] : files) {
    if (!name.ends_with(".svg")) continue;
    CHECK(contains(html, text));
    CHECK(names.insert(name).second);
  }
  CHECK(names.size() == panels);
  CHECK(contains(html, "tritgrad reproduce &lt;x&gt;"));
}

TEST_CASE("reproduce: panels of one data set share their axis of losses") {
  StudyResults results = made_up(0.25);
  const StudyFiles before = study_files(results, "");
  const Variant& neighbour = results.figures[0].panels[1].lines[0].variant;
  results.curves.at(variant_key(neighbour))[0].epoch_loss[0] = 1000.0;
  const StudyFiles after = study_files(results, "");
  REQUIRE(before.size() == after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    // The neighbour's loss moved its ticks.
    if (before[i].first == "figure3-1.svg") CHECK(before[i].second != after[i].second);
    if (before[i].first == "figure3-3.svg") CHECK(before[i].second == after[i].second);
  }
}

}  // namespace tritgrad::test::test_reproduce
