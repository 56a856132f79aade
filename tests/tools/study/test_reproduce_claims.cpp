// What the study says of its numbers.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/support/made_up_study.h"
#include "tests/support/support_files.h"
#include "tools/study/claims.h"
#include "tools/study/tremor.h"

namespace tritgrad::test::test_reproduce_claims {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("reproduce: verdicts need all seeds and a tenth of difference") {
  const Sample reference{"b", {1.0, 1.0, 1.0}};
  CHECK(compare_samples({"a", {2.0, 1.5, 1.2}}, reference) == Verdict::kHigher);
  CHECK(compare_samples({"a", {0.5, 0.9, 0.1}}, reference) == Verdict::kLower);
  CHECK(compare_samples({"a", {0.5, 0.4, 1.1}}, reference) == Verdict::kUnclear);
  CHECK(compare_samples({"a", {1.05, 1.05, 1.05}}, reference) == Verdict::kUnclear);
  CHECK(compare_samples({"a", {kNan, kNan, kNan}}, reference) == Verdict::kHigher);
  CHECK(compare_samples(reference, {"a", {kNan, kNan, kNan}}) == Verdict::kLower);
  // Two of three diverged; the third was better.
  CHECK(compare_samples({"a", {kNan, kNan, 0.5}}, reference) == Verdict::kUnclear);
  CHECK(compare_samples(reference, {"a", {kNan, kNan, 0.5}}) == Verdict::kUnclear);
  CHECK(compare_samples({"a", {kNan, kNan, 1.5}}, reference) == Verdict::kHigher);
  CHECK(compare_samples({"a", {kNan, kNan, kNan}}, {"b", {kNan, kNan, kNan}}) == Verdict::kUnclear);
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
        "a at 0.0200, 1.00 times that: about the same, higher in 0 of 1 seed");
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
        "Iris, correct form: no compression ends at a loss of 0.250; density 10 % at 0.250, 1.00 "
        "times that: about the same, higher in 0 of 3 seeds; density 1 % at 0.250, 1.00 times "
        "that: about the same, higher in 0 of 3 seeds.");
  set_end(results, figure.panels[0].lines[2].variant, 0.5);
  const std::string after = figure_claims(figure, results)[0];
  CHECK(contains(after, "density 1 % at 0.500, 2.0 times that: worse in 3 of 3 seeds"));
}

TEST_CASE("reproduce: ratios have the digits that tell on which side of a tenth they are") {
  CHECK(ratio_text(2.53) == "2.5");
  CHECK(ratio_text(0.127) == "0.13");
  CHECK(ratio_text(1.051) == "1.05");
  CHECK(ratio_text(1.14) == "1.14");
  CHECK(ratio_text(1.0996) == "1.0996");  // not 1.10, which would be more than a tenth
  CHECK(ratio_text(0.8996) == "0.8996");
  CHECK(ratio_text(0.904) == "0.90");  // as much as a tenth is the same
  const Sample reference{"b", {1.0, 1.0}};
  CHECK(contains(end_phrase({"a", {1.051, 1.051}}, reference), "1.05 times that: about the same"));
  CHECK(contains(end_phrase({"a", {1.14, 1.14}}, reference), "1.14 times that: worse in 2 of 2"));
  CHECK(comparison({"a", {0.8, 0.8}}, reference, "less", "more") ==
        "0.80 times, less in every seed");
  CHECK(comparison({"a", {1.2, 1.4}}, reference, "less", "more") ==
        "1.30 times, more in every seed");
  CHECK(comparison({"a", {0.9, 1.7}}, reference, "less", "more") ==
        "1.30 times, no clear difference");
  CHECK(comparison({"a", {1.0, 1.1}}, reference, "less", "more") == "1.05 times, about the same");
}

TEST_CASE("reproduce: seeds with a period are counted") {
  const PhaseRatio wave{2.58, 1.05}, flat{1.29, 1.29};
  CHECK(period_phrase("x", {wave, wave}) ==
        "x by a factor of 2.58 (noise 1.05: a period of ten in 2 of 2 seeds)");
  CHECK(contains(period_phrase("x", {wave, flat, wave}),
                 "2.58 (noise 1.05: a period of ten in 2 of 3"));
  CHECK(contains(period_phrase("x", {flat}), "a period of ten in 0 of 1 seed)"));
}

TEST_CASE("reproduce: constant buckets in words") {
  StudyResults results = made_up(0.25);
  CHECK(contains(bucket_sentence(results), "of the 0 that steps wrote 0 are, 0 of them at 0."));
  const Variant variant{"iris", Form::kCorrected, 0.01, 4};
  std::vector<Curve>& curves = results.curves.at(variant_key(variant));
  curves[0].numbers.buckets = {4, 4, 1000, 30, 20};
  curves[1].numbers.buckets = {4, 3, 1000, 50, 40};
  CHECK(contains(bucket_sentence(results),
                 "7 of the 8 buckets of all runs are so at 0 before the first step, which is fed "
                 "nothing back; of the 2.0 k that steps wrote 80 are, 60 of them at 0; most, 50 of "
                 "1000, in seed 2 of iris/corrected/density=1%/feedback=4bit."));
}

TEST_CASE("reproduce: the published form beside the correct one with its rate") {
  StudyResults results = made_up(0.25);
  const StudyFigure& figure = results.figures.back();
  const auto set = [&](std::size_t line, double tremor, double length) {
    for (Curve& curve : results.curves.at(variant_key(figure.panels[0].lines[line].variant))) {
      curve.numbers.roughness = std::log1p(tremor);
      curve.numbers.update_length = length;
    }
  };
  set(0, 0.03, 0.01);
  set(1, 0.40, 0.05);
  set(3, 0.41, 0.06);
  CHECK(published_claims(figure, results)[0] ==
        "Iris, no compression: the published form trembles by 40.0 (40.0 to 40.0) %, with the "
        "period of the "
        "window in 0 of 3 seeds. Its updates are 5.0 times as long as those of the correct form, "
        "which trembles by 3.00 (3.00 to 3.00) %. With 6.5 times the learning rate the correct "
        "form trembles by "
        "41.0 (41.0 to 41.0) %; against the published form 1.02 times, about the same.");
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

}  // namespace tritgrad::test::test_reproduce_claims
