// What several runs say together, in numbers and in sentences.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/markup_balance.h"
#include "tests/support/sample_runs.h"
#include "tests/support/support_files.h"
#include "tools/compare/report.h"
#include "tools/compare/summary.h"
#include "tools/report/number_text.h"

namespace tritgrad::test::test_summary {
namespace {

TEST_CASE("summary: means, sample deviations and the difference with its interval") {
  const Comparison comparison = compare(two_recipes(), "master");
  REQUIRE(comparison.recipes.size() == 2);
  const RecipeSummary& master = comparison.recipes[0];
  const RecipeSummary& latent = comparison.recipes[1];
  CHECK(master.is_baseline);
  CHECK(latent.recipe == "latent8");
  CHECK(latent.score->mean == doctest::Approx(0.986));
  // Two values 0.002 apart: deviation 0.002 / sqrt 2.
  CHECK(*latent.score->spread == doctest::Approx(0.002 / std::sqrt(2.0)));
  CHECK_FALSE(master.delta);
  CHECK(*latent.delta == doctest::Approx(0.15));
  // Variances 2e-6 and 0.5e-6 over two seeds each: their means' 1e-6 and 0.25e-6, together 1.25e-6;
  // degrees of freedom 1.25^2 / (1^2 + 0.25^2) = 25 / 17.
  const double half = t_quantile(0.975, 25.0 / 17.0) * 100.0 * std::sqrt(1.25e-6);
  CHECK(latent.delta_interval->low == doctest::Approx(0.15 - half));
  CHECK(latent.delta_interval->high == doctest::Approx(0.15 + half));
  CHECK_FALSE(is_above(latent));
  CHECK_FALSE(master.delta_interval);
  CHECK(*latent.bytes_ratio == doctest::Approx(1.18 / 16));
  CHECK(*latent.seconds_per_run == doctest::Approx(12.5));
}

TEST_CASE("summary: a run that other programs slowed does not decide the time of all") {
  std::vector<RunResult> runs;
  for (const double seconds : {10.0, 814.0, 12.0}) {
    runs.push_back(make_run("master", runs.size() + 1, 0.9, kMaster));
    runs.back().seconds = seconds;
  }
  CHECK(*compare(runs, "master").recipes[0].seconds_per_run == 12.0);
}

TEST_CASE("summary: where the baseline was not run, the first recipe takes its place") {
  const Comparison comparison = compare(two_recipes(), "none of these");
  CHECK(comparison.baseline == "latent8");
  CHECK(comparison.recipes[0].is_baseline);
  CHECK(*comparison.recipes[1].delta == doctest::Approx(-0.15));
  CHECK(*comparison.recipes[1].bytes_ratio == doctest::Approx(16 / 1.18));
}

TEST_CASE("summary: one seed, or one cross-validated seed, has no interval") {
  std::vector<RunResult> runs = {make_run("latent8", 1, 0.985, kLatent),
                                 make_run("master", 1, 0.984, kMaster)};
  CHECK(compare(runs, "master").recipes[1].delta);
  CHECK_FALSE(compare(runs, "master").recipes[1].delta_interval);
  for (RunResult& run : runs) {
    run.folds = 5;
    run.test_score_std = 0.01;
  }
  CHECK_FALSE(compare(runs, "master").recipes[1].delta_interval);
}

TEST_CASE("summary: what diverged is counted, named, and in no mean") {
  std::vector<RunResult> runs = two_recipes();
  RunResult gone;
  gone.recipe = "latent8";
  gone.seed = 3;
  gone.epochs = 2;
  gone.seconds = 1000;
  gone.diverged = "the loss is inf at step 3; lower the learning rate (--lr)";
  runs.push_back(gone);
  gone.recipe = "hopeless";
  runs.push_back(gone);
  const ComparisonRecord record = record_of(runs);
  const Comparison comparison = compare(runs, "master");
  const RecipeSummary& latent = comparison.recipes[1];
  CHECK(latent.diverged == 1);
  CHECK(latent.seeds == 3);
  CHECK(latent.score->count == 2);
  CHECK(latent.bytes.total() == doctest::Approx(kLatent.total()));
  CHECK(*latent.seconds_per_run == doctest::Approx(12.5));
  CHECK(score_text(latent) == "98.60 ± 0.14 (1 diverged)");
  const std::string html = html_of(runs);
  CHECK(markup_error(html) == "");
  CHECK(contains(html, "<td>diverged: the loss is inf at step 3</td>"));
  // Nothing is known of what no seed finished.
  CHECK(score_text(comparison.recipes[2]) == std::string(kMissing) + " (1 diverged)");
  for (const SummaryColumn& column : summary_columns()) {
    CAPTURE(column.heading);
    const std::string_view heading = column.heading;
    if (heading == "recipe" || heading == "seeds" || heading == "{score}") continue;
    CHECK(column.text(comparison.recipes[2]) == kMissing);
  }
  CHECK_FALSE(contains(html, "<td>0 B</td>"));
  CHECK(conclusion(compare({gone}, "master")) == "Every run diverged.");
  CHECK(compare({gone}, "master").score_name == "test accuracy");
  CHECK_FALSE(says_nan(render_terminal_table(record)));
}

TEST_CASE("summary: recipes that were warned of are marked, with the reason below the table") {
  std::vector<RunResult> runs = two_recipes();
  const ComparisonRecord calm = record_of(runs);
  CHECK(footnotes(compare(runs, "master")).empty());
  CHECK_FALSE(contains(render_terminal_table(calm), "*"));
  runs[1].warnings = {"no trit flipped", "something else"};
  runs[2].warnings = runs[3].warnings = {"rounding loses all updates"};
  const Comparison comparison = compare(runs, "master");
  const std::vector<std::string> notes = {
      "* master, warned of in 2 of 2 seeds: rounding loses all updates",
      "* latent8, warned of in 1 of 2 seeds: no trit flipped"};
  CHECK(footnotes(comparison) == notes);
  const std::string table = render_terminal_table(record_of(runs));
  CHECK(contains(table, "latent8 * "));
  CHECK(table.ends_with(notes[0] + "\n" + notes[1] + "\n"));
  const std::string html = html_of(runs);
  CHECK(markup_error(html) == "");
  CHECK(contains(html, "latent8 *<"));
  const std::string markdown = render_markdown(make_page(report_of(runs)), "pictures");
  CHECK(contains(markdown, "| **master \\*** |"));  // the baseline stands out as before
  for (const std::string& note : notes) {
    CHECK(contains(html, note));
    CHECK(contains(markdown, "\\" + note + "\n"));
  }
}

TEST_CASE("summary: one cross-validated seed has the spread of its folds") {
  RunResult run = make_run("latent8", 1, 0.96, kLatent);
  run.folds = 5;
  run.test_score_std = 0.02;
  const Comparison comparison = compare({run}, "master");
  CHECK(score_text(comparison.recipes[0]) == "96.00 ± 2.00");
  CHECK(comparison.recipes[0].score->count == 5);
}

TEST_CASE("summary: validation accuracy stands in when nothing was tested") {
  std::vector<RunResult> runs = two_recipes();
  for (RunResult& run : runs) {
    run.val_score = run.test_score;
    run.test_score.reset();
  }
  const Comparison comparison = compare(runs, "master");
  CHECK(comparison.score_name == "validation accuracy");
  CHECK(score_text(comparison.recipes[1]) == "98.60 ± 0.14");
  CHECK(contains(render_terminal_table(record_of(runs)), "val acc %"));
}

TEST_CASE("summary: a seed that broke leaves the means of the others") {
  std::vector<RunResult> runs = two_recipes();
  runs[0].test_score = kNan;
  runs[0].train_loss = kInfinity;
  runs[0].epochs = 0;
  const RecipeSummary latent = compare(runs, "master").recipes[1];
  CHECK(latent.score->mean == 0.987);
  CHECK(latent.score->count == 1);
  CHECK_FALSE(latent.score->spread);
  CHECK(*latent.train_loss == 0.01);
}

// Runs of a regression, whose scores are RMSE in the units of the label: lower is better.
std::vector<RunResult> rmse_runs(double first, double second) {
  std::vector<RunResult> runs;
  for (const double score : {50.0, 50.2}) runs.push_back(make_run("master", 1, score, kMaster));
  for (const double score : {first, second}) {
    runs.push_back(make_run("latent8", 1, score, kLatent));
  }
  for (RunResult& run : runs) run.metric = Metric::kRmse;
  return runs;
}

TEST_CASE("summary: RMSE is written with four digits, in the units of the label") {
  const Comparison comparison = compare(rmse_runs(60.0, 60.4), "master");
  const RecipeSummary& latent = comparison.recipes[1];
  CHECK(comparison.score_name == "test RMSE");
  CHECK(score_text(comparison.recipes[0]) == "50.10 ± 0.14");
  CHECK(*latent.delta == doctest::Approx(10.1));
  CHECK(pareto_front(comparison) == std::vector<std::size_t>{1, 0});
  CHECK(is_above(latent));
  CHECK(differences(comparison) ==
        std::vector<std::string>{
            "Worse than master (the 95 % interval of the difference lies above 0): latent8 "
            "(+10.10)."});
  CHECK(conclusion(comparison) ==
        "No smaller recipe's 95 % interval rules out an RMSE 1 % above that of master. master "
        "reaches 50.10 ± 0.14 test RMSE with 16.00 bytes per parameter (2 seeds).");
  const std::string table = render_terminal_table(record_of(rmse_runs(60.0, 60.4)));
  CHECK(contains(table, "test RMSE "));
  CHECK_FALSE(contains(table, " acc"));
}

TEST_CASE("summary: a smaller error is better, and better on the front") {
  const Comparison comparison = compare(rmse_runs(40.0, 40.02), "master");
  CHECK(pareto_front(comparison) == std::vector<std::size_t>{1});
  CHECK(conclusion(comparison)
            .starts_with("latent8, at 1.18 bytes per parameter instead of 16.00, is the smallest "
                         "whose 95 % interval "
                         "rules out an RMSE 1 % above that of master: test RMSE 40.01 against "
                         "50.10 (difference "
                         "−10.09, interval "));
  for (const std::string& page : {html_of(rmse_runs(40.0, 40.02))}) {
    CHECK(contains(page, "down and to the left is better"));
    CHECK(contains(page, "The score minus that of master, in RMSE in the units of the label."));
    CHECK_FALSE(contains(page, "accuracy %"));
  }
}

TEST_CASE("summary: errors far from 1 keep four digits") {
  CHECK(score_unit(Metric::kRmse, 53211.7).text(53211.7) == "53212");
  CHECK(score_unit(Metric::kRmse, 0.001234).text(0.001234) == "0.001234");
  CHECK(score_unit(Metric::kRmse, 0.0).text(0.0) == "0.00");
  CHECK(score_unit(Metric::kRmse, 7.4412e-51).text(7.4412e-51) == "7.441e-51");
}

TEST_CASE("conclusion: the smallest recipe whose interval rules out a loss of half a point") {
  std::vector<RunResult> runs;
  const auto add = [&](const char* recipe, double first, double second, double bytes) {
    runs.push_back(make_run(recipe, 1, first, {bytes, 0, 0, 0, 0}));
    runs.push_back(make_run(recipe, 2, second, {bytes, 0, 0, 0, 0}));
  };
  add("master", 0.985, 0.985, 16.0);
  add("latent8", 0.9852, 0.9854, 1.0);
  // Two seeds 0.02 points apart: 0.01 points times t(1) = 12.706 to either side.
  CHECK(conclusion(compare(runs, "master")) ==
        "latent8, at 1.00 bytes per parameter instead of 16.00, is the smallest whose 95 % "
        "interval rules out a loss of 0.5 points against master: test accuracy 98.53 % against "
        "98.50 % (difference +0.03 points, interval −0.10 … +0.16, 2 seeds).");
  RunResult lost = make_run("latent8", 3, 0.0, {1.0, 0, 0, 0, 0});
  lost.test_score.reset();
  lost.diverged = "the loss is inf";
  runs.push_back(lost);
  CHECK(contains(conclusion(compare(runs, "master")),
                 "interval −0.10 … +0.16, 2 of 3 seeds, as the others diverged)."));
  add("better", 0.99, 0.9902, 7.0);
  add("just-within", 0.98015, 0.98017, 0.8);  // -0.484 +- 0.013
  add("just-below", 0.98005, 0.98007, 0.7);   // -0.494 +- 0.013
  add("wide", 0.98, 1.0, 0.5);                // above in the mean, which says nothing
  add("trits", 0.95, 0.9502, 0.24);
  CHECK(conclusion(compare(runs, "master")).starts_with("just-within, at 0.80 bytes"));
}

TEST_CASE("conclusion: without such a recipe, that there is none, and the most accurate") {
  std::vector<RunResult> runs = {make_run("master", 1, 0.985, kMaster),
                                 make_run("latent8", 1, 0.98, kLatent),
                                 make_run("trits", 1, 0.95, {0.24, 0, 0, 0, 0})};
  CHECK(conclusion(compare(runs, "master")) ==
        "No smaller recipe's 95 % interval rules out a loss of 0.5 points against master. master "
        "reaches 98.50 % test accuracy with 16.00 bytes per parameter (1 seed).");
  for (unsigned seed = 2; seed <= 3; ++seed) {
    runs.push_back(make_run("master", seed, 0.985 + 1e-5 * seed, kMaster));
    runs.push_back(make_run("latent8", seed, 0.98 + 1e-5 * seed, kLatent));
  }
  CHECK(conclusion(compare(runs, "master")).starts_with("No smaller recipe's"));
}

TEST_CASE("conclusion: speaks without a baseline, without accuracy and without runs") {
  CHECK(conclusion(compare({make_run("latent8", 1, 0.985, kLatent)}, "master")) ==
        "latent8 reaches 98.50 % test accuracy with 1.18 bytes per parameter (1 seed).");
  RunResult run = make_run("latent8", 1, 0.985, kLatent);
  run.test_score.reset();
  CHECK(conclusion(compare({run}, "master")) == "No accuracy was measured.");
  CHECK(conclusion(compare({}, "master")) == "No runs to compare.");
}

TEST_CASE("differences: below, above, not told apart") {
  const BytesPerParameter small{0.2, 0, 0, 0, 0};
  std::vector<RunResult> runs = two_recipes();
  for (unsigned seed = 1; seed <= 2; ++seed) {
    runs.push_back(make_run("worse", seed, 0.9 + 1e-5 * seed, small));
    runs.push_back(make_run("better", seed, 0.999 + 1e-5 * seed, kMaster));
  }
  runs.push_back(make_run("once", 1, 0.98, kMaster));  // without an interval
  ComparisonRecord record = record_of(runs);
  record.tunings = {
      {"worse", {{0.5, 0.1, 0.9, 1, false}, {1, 0.2, 0.95, 1, false}, {2, 0.4, {}, 1, false}}, 1},
      {"better", {{0.5, 0.1, 0.9, 1, false}, {1, 0.2, 0.8, 1, false}, {2, 0.4, 0.7, 1, false}}, 0}};
  const std::vector<std::string> expected = {
      "Below master (the 95 % interval of the difference lies below 0): worse (−8.45 points).",
      "Above master (the 95 % interval of the difference lies above 0): better (+1.45 points).",
      "Not told from master by these seeds (the 95 % interval holds 0): latent8 (−0.54 … +0.84).",
      "Without an interval, which takes two seeds or more that differ: once (−0.45 points).",
      "Of 3 intervals of 95 %, 0.15 would miss 0 by chance if no recipe differed from master."};
  CHECK(differences(compare(runs, "master")) == expected);
  const std::string html = render_html(make_page({"c", "m", {record}}));
  for (const std::string& sentence : expected) CHECK(contains(html, "<li>" + sentence + "</li>"));
  for (const char* cell : {"diverged", "0.2 (× 1)", "0.1 (× 0.5, edge)", "95.00"}) {
    CHECK(contains(html, "<td>" + std::string(cell) + "</td>"));
  }
}

TEST_CASE("pareto: bytes that print alike are alike") {
  const auto run = [](const char* name, double bytes, double accuracy) {
    return make_run(name, 1, accuracy, {bytes, 0, 0, 0, 0});
  };
  const auto front = [](const std::vector<RunResult>& runs) {
    return pareto_front(compare(runs, "master"));
  };
  // Both 1.00 B: the first has not "nothing as small and more accurate".
  CHECK(front({run("a", 0.998, 0.90), run("b", 1.004, 0.95)}) == std::vector<std::size_t>{1});
  // So do accuracies: c has more bytes than a, and prints the same 95.00 %.
  CHECK(front({run("a", 1.0, 0.95), run("c", 2.0, 0.950004)}) == std::vector<std::size_t>{0});
  // 0.12 and 0.13 B: 0.125 prints as it does, not as it would round half up.
  CHECK(front({run("a", 0.125, 0.90), run("b", 0.13, 0.95)}) == std::vector<std::size_t>{0, 1});
}

TEST_CASE("pareto: fewest bytes first, nothing as small and more accurate") {
  std::vector<RunResult> runs;
  const auto add = [&](const char* name, double bytes, double accuracy) {
    runs.push_back(make_run(name, 1, accuracy, {bytes, 0, 0, 0, 0}));
  };
  add("master", 16, 0.98);  // as accurate as c, with more bytes
  add("a", 1, 0.90);
  add("b", 1, 0.95);  // as small as a, and better
  add("c", 2, 0.98);
  add("d", 3, 0.97);
  const Comparison comparison = compare(runs, "master");
  std::vector<std::string> names;
  for (const std::size_t i : pareto_front(comparison)) {
    names.push_back(comparison.recipes[i].recipe);
  }
  CHECK(names == std::vector<std::string>{"b", "c"});
}

}  // namespace
}  // namespace tritgrad::test::test_summary
