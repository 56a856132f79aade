// The study as pictures, tables and sentences, on a few epochs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "engine/builtin_data.h"
#include "engine/parallel.h"
#include "tests/markup_balance.h"
#include "tests/support_files.h"
#include "tools/reproduce/claims.h"
#include "tools/reproduce/study_charts.h"
#include "tools/reproduce/study_csv.h"
#include "tools/reproduce/study_page.h"
#include "tools/reproduce/tremor.h"

namespace tritgrad {
namespace {

constexpr int kEpochs = 20;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// All runs, once for all test cases.
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

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Results in which every curve says the same, for sentences about numbers of one's own.
StudyResults made_up(double end_loss) {
  StudyResults results{{.epochs = 4, .seeds = 3, .quiet = true}, study_figures(), {}, {}, 0.0};
  Curve curve{{1.0, 0.5, 0.6, end_loss}, {}};
  curve.numbers = measure_curve(curve.epoch_loss, {});
  for (const Variant& variant : all_variants(results.figures)) {
    results.curves[variant_key(variant)] = {curve, curve, curve};
  }
  return results;
}

void set_end(StudyResults& results, const Variant& variant, double loss) {
  for (Curve& curve : results.curves.at(variant_key(variant))) curve.numbers.end_loss = loss;
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

TEST_CASE("reproduce: a figure's CSV has a column for each variant and a row for each epoch") {
  for (const StudyFigure& figure : study_figures()) {
    CAPTURE(figure.number);
    const auto rows = cells_of(figure_csv(figure, small_study()));
    REQUIRE(rows.size() == 1 + kEpochs);
    CHECK(rows[0][0] == "epoch");
    std::set<std::string> expected;
    for (const Variant& variant : all_variants({figure})) expected.insert(variant_key(variant));
    CHECK(std::set<std::string>(rows[0].begin() + 1, rows[0].end()) == expected);
    for (std::size_t i = 1; i < rows.size(); ++i) {
      REQUIRE(rows[i].size() == rows[0].size());
      CHECK(rows[i][0] == std::to_string(i));
    }
    const Variant& first = figure.panels[0].lines[0].variant;
    const double loss = std::stod(rows[kEpochs][1]);
    CHECK(loss == doctest::Approx(median_curve(small_study().of(first)).back()).epsilon(1e-8));
  }
}

TEST_CASE("reproduce: the other CSV files") {
  const auto files = study_csv_files(small_study());
  std::set<std::string> names;
  for (const auto& [name, text] : files) names.insert(name);
  CHECK(names == std::set<std::string>{"figure3.csv", "figure4.csv", "figure5.csv", "figure6.csv",
                                       "figure7.csv", "figure8.csv", "figure9.csv", "period.csv",
                                       "numbers.csv"});
  const auto costs = cells_of(cost_csv(small_study().costs));
  CHECK(costs[0] == std::vector<std::string>{"parameters", "rule", "bytes_per_parameter",
                                             "seconds_per_step", "lower_quartile",
                                             "upper_quartile"});
  CHECK(costs.size() == 1 + 2 * 2);
  CHECK(cells_of(period_csv(small_study())).size() == 1 + 10);
  CHECK(cells_of(numbers_csv(small_study())).size() ==
        1 + 2 * all_variants(study_figures()).size());
}

TEST_CASE("reproduce: a value that is not finite is an empty cell") {
  StudyResults results = made_up(kNan);
  for (auto& [key, curves] : results.curves) {
    for (Curve& curve : curves) curve.epoch_loss.back() = kNan;
  }
  const std::string csv = figure_csv(results.figures[0], results);
  CHECK(csv.ends_with("\n4,,,,,,,,,,,,\n"));
  const std::string html = render_study({}, results);
  CHECK_FALSE(std::regex_search(html, std::regex("\\b(nan|inf)\\b")));
  CHECK(markup_error(html) == "");
}

TEST_CASE("reproduce: bytes of state are formula and ledger alike") {
  for (const CostPoint& point : small_study().costs) {
    CAPTURE(point.rule);
    CHECK(point.state_bytes == point.ledger_bytes);
    CHECK(point.seconds_per_step > 0.0);
    CHECK(point.samples == 7);
    CHECK(point.lower_quartile <= point.seconds_per_step);
    CHECK(point.upper_quartile >= point.seconds_per_step);
  }
  CHECK(small_study().costs[0].bytes_per_parameter() ==
        doctest::Approx(8.0).epsilon(0.01));  // and a counter
  CHECK(small_study().costs[3].bytes_per_parameter() < 4.0);
}

TEST_CASE("reproduce: the page is well formed, complete and loads nothing") {
  const std::string html = render_study({"tritgrad reproduce <x>", "a & b"}, small_study());
  CHECK(markup_error(html) == "");
  for (const char* part : {"<script", "<link", "<img", "src=", "href=", "url(", "@import"}) {
    CHECK_FALSE(contains(html, part));
  }
  std::size_t charts = 0;
  for (std::size_t at = 0; (at = html.find("<svg", at)) != std::string::npos; ++at) ++charts;
  std::size_t panels = 2 + 2 + 2;  // density, period, cost
  for (const StudyFigure& figure : study_figures()) panels += figure.panels.size();
  CHECK(charts == panels);
  const auto pictures = study_pictures(small_study());
  CHECK(pictures.size() == panels);
  std::set<std::string> names;
  for (const auto& [name, svg] : pictures) {
    CHECK(contains(html, svg));
    CHECK(names.insert(name).second);
  }
  CHECK(contains(html, "tritgrad reproduce &lt;x&gt;"));
}

TEST_CASE("reproduce: panels of one data set share their axis of losses") {
  StudyResults results = made_up(0.25);
  const StudyFigure& figure = results.figures[0];
  const auto before = figure_charts(figure, results);
  Curve& curve = results.curves.at(variant_key(figure.panels[1].lines[0].variant))[0];
  curve.epoch_loss[0] = 1000.0;
  const auto after = figure_charts(figure, results);
  CHECK(before[0].svg != after[0].svg);  // the neighbour's loss moved its ticks
  CHECK(before[2].svg == after[2].svg);
}

TEST_CASE("reproduce: verdicts need all seeds and a tenth of difference") {
  const Sample reference{"b", {1.0, 1.0, 1.0}};
  CHECK(compare_samples({"a", {2.0, 1.5, 1.2}}, reference) == Verdict::kHigher);
  CHECK(compare_samples({"a", {0.5, 0.9, 0.1}}, reference) == Verdict::kLower);
  CHECK(compare_samples({"a", {0.5, 0.4, 1.1}}, reference) == Verdict::kUnclear);
  CHECK(compare_samples({"a", {1.05, 1.05, 1.05}}, reference) == Verdict::kUnclear);
  CHECK(compare_samples({"a", {kNan, kNan, kNan}}, reference) == Verdict::kHigher);
  CHECK(compare_samples(reference, {"a", {kNan, kNan, kNan}}) == Verdict::kLower);
}

TEST_CASE("reproduce: sentences follow their numbers") {
  const Sample reference{"b", {0.02, 0.02, 0.02}};
  CHECK(end_phrase({"a", {0.05, 0.05, 0.05}}, reference) ==
        "a at 0.0500, 2.5 times that: worse in 3 of 3 seeds");
  CHECK(end_phrase({"a", {0.01, 0.01, 0.01}}, reference) ==
        "a at 0.0100, 0.50 times that: better in 3 of 3 seeds");
  CHECK(end_phrase({"a", {0.05, 0.05, 0.01}}, reference) ==
        "a at 0.0500, 2.5 times that: no clear difference, higher in 2 of 3 seeds");
  CHECK(end_phrase({"a", {kNan, kNan, 0.01}}, reference) == "a does not stay finite");
  CHECK(end_phrase({"a", {1e-7, 1e-7, 1e-7}}, reference) ==
        "a at 1.0e-07, less than 0.001 times that: better in 3 of 3 seeds");
  CHECK(end_phrase({"a", {0.02}}, {"b", {0.02}}) ==
        "a at 0.0200, 1.0 times that: about the same, higher in 0 of 1 seed");
  CHECK(loss_text(1e-9) == "less than 6e-08");
  // Losses below what fp32 resolves have no ratio.
  const Sample tiny{"a", {kResolvedLoss, kResolvedLoss, kResolvedLoss}};
  CHECK(end_phrase(tiny, reference) ==
        "a at less than 6e-08, less than 0.001 times that: better in 3 of 3 seeds");
  CHECK(end_phrase(tiny, {"b", {1e-5, 1e-5, 1e-5}}) ==
        "a at less than 6e-08, less than 0.0060 times that: better in 3 of 3 seeds");
  CHECK(end_phrase({"c", {6e-6, 6e-6, 6e-6}}, tiny) ==
        "c at 6.0e-06, more than 101 times that: worse in 3 of 3 seeds");
  CHECK(end_phrase(tiny, tiny) == "a at less than 6e-08: about the same, higher in 0 of 3 seeds");

  StudyResults results = made_up(0.25);
  const StudyFigure& figure = results.figures[0];
  const std::string before = figure_claims(figure, results)[0];
  CHECK(before ==
        "Iris, correct form: no compression ends at a loss of 0.250; density 10 % at 0.250, 1.0 "
        "times that: about the same, higher in 0 of 3 seeds; density 1 % at 0.250, 1.0 times "
        "that: about the same, higher in 0 of 3 seeds.");
  set_end(results, figure.panels[0].lines[2].variant, 0.5);
  const std::string after = figure_claims(figure, results)[0];
  CHECK(contains(after, "density 1 % at 0.500, 2.0 times that: worse in 3 of 3 seeds"));
}

TEST_CASE("reproduce: the first density that is worse is found, or none") {
  StudyResults results = made_up(0.25);
  const StudyPanel& panel = results.figures[2].panels[0];
  CHECK(onset_sentence(panel, results) ==
        "Iris, correct form: 50 % ends at a loss of 0.250, 1 % at 0.250; no density is worse in "
        "every seed.");
  set_end(results, panel.lines[3].variant, 0.5);
  CHECK(contains(onset_sentence(panel, results),
                 "5 % is the first density that is worse in every seed, 2.0 times that of 50 %."));
}

TEST_CASE("reproduce: a period is found where there is one, and not in noise") {
  std::vector<double> noise, periodic;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const double value = 1.0 + static_cast<double>(random_uniform({3, 1, 0}, i));
    noise.push_back(value);
    periodic.push_back(value * std::pow(0.9, static_cast<double>((i + 1) % 10)));
  }
  const PhaseRatio flat = phase_ratio(noise, 1, 7), wave = phase_ratio(periodic, 1, 7);
  // The phases span 0.9^9 = 1 / 2.58. ln of the noise has a deviation of 0.20, the mean of a
  // phase's 400 values 0.01; both ends may be off by five of them.
  CHECK(wave.ratio == doctest::Approx(std::pow(0.9, -9)).epsilon(0.1));
  CHECK(flat.ratio < 1.1);
  CHECK(contains(period_phrase("x", {wave, wave}), ": a period of ten)"));
  CHECK(contains(period_phrase("x", {wave, flat}), ": no period of ten)"));
  const std::vector<double> means = phase_means(periodic, 1, 10);
  CHECK(std::max_element(means.begin(), means.end()) == means.begin());
}

TEST_CASE("reproduce: what belongs to the place in an epoch is no period of ten") {
  std::vector<double> values;  // the last of eight batches is different
  for (int step = 1; step <= 4000; ++step) values.push_back(step % 8 == 0 ? 0.1 : 1.0);
  CHECK(phase_ratio(values, 1, 8).ratio == doctest::Approx(1.0));
  CHECK(phase_ratio(values, 1, 1).ratio > 1.5);
}

TEST_CASE("reproduce: a beat of steps and epochs is found where there is one") {
  std::vector<double> noise, beating;
  for (std::uint64_t epoch = 0; epoch < 1000; ++epoch) {
    const double value = std::exp(0.1 * static_cast<double>(random_normal({3, 2, 0}, epoch)));
    noise.push_back(value);
    beating.push_back(value * (epoch % 5 == 0 ? 1.5 : 1.0));
  }
  StepTrace trace;
  trace.steps_per_epoch = 8;  // 40 steps are five epochs and four windows
  Curve flat, wave;
  flat.numbers = measure_curve(noise, trace);
  wave.numbers = measure_curve(beating, trace);
  CHECK(wave.numbers.beat == 5);
  CHECK(wave.numbers.beat_correlation > wave.numbers.beat_noise);
  CHECK(std::abs(flat.numbers.beat_correlation) < flat.numbers.beat_noise);
  CHECK(contains(beat_phrase("x", {wave, wave}), "the period is there"));
  CHECK(contains(beat_phrase("x", {wave, flat}), "not in every seed"));
}

TEST_CASE("reproduce: rises and tremor") {
  CHECK(largest_rise({1.0, 0.5, 0.75, 0.7, 0.8}) == doctest::Approx(0.25));
  CHECK(largest_rise({1.0, 0.5, kNan}) == 0.0);
  std::vector<double> steady, zigzag;
  for (int epoch = 0; epoch < 100; ++epoch) {
    steady.push_back(std::pow(0.95, epoch));
    zigzag.push_back(steady.back() * (epoch % 2 == 0 ? 1.1 : 1.0));
  }
  CHECK(roughness(steady) == doctest::Approx(0.0));
  // ln 1.1 up and down: of the 2 w + 1 epochs around, w or w + 1 are up, so the distance is
  // ln 1.1 * w / (2 w + 1) or ln 1.1 * (w + 1) / (2 w + 1): between a third and two thirds.
  CHECK(roughness(zigzag) > std::log(1.1) / 3.0);
  CHECK(roughness(zigzag) < std::log(1.1) * 2.0 / 3.0);
  CHECK(std::isnan(roughness({1e-9, 1e-9, 1e-9, 1e-9})));  // nothing that could be resolved
  CHECK(median({3.0, 1.0, 2.0}) == 2.0);
  CHECK(median({4.0, 1.0, 2.0, 3.0}) == 2.5);
  CHECK(std::isinf(median({kNan, kNan, 1.0})));
}

TEST_CASE("reproduce: costs in words") {
  std::vector<CostPoint> costs = {{1000, "Adam", 8000, 8000, 1e-3, 0.5e-3, 2e-3, 7},
                                  {1000, "MicroAdam", 1000, 1000, 3e-3, 2.5e-3, 4e-3, 7}};
  CHECK(
      cost_claims(costs)[0] ==
      "1.0 k parameters: Adam holds 8.00 bytes of state per parameter, MicroAdam 1.00, 8.00 times "
      "less; a step takes 3.00 ms (2.50 to 4.00) against 1.00 ms (0.500 to 2.00), 3.00 times as "
      "long. The bytes are those that the ledger counted.");
  costs[1].lower_quartile = 2e-3;
  CHECK(contains(cost_claims(costs)[0], "(0.500 to 2.00), which does not tell them apart."));
  costs[1].ledger_bytes = 999;
  CHECK(contains(cost_claims(costs)[0], "The ledger counted 8000 and 999 bytes instead."));
}

}  // namespace tritgrad
