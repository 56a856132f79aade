#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "engine/check.h"
#include "tests/markup_balance.h"
#include "tools/compare_table.h"
#include "tools/markup.h"
#include "tools/numbers.h"
#include "tools/report_html.h"
#include "tools/run_result.h"
#include "tools/summary.h"

namespace tritgrad {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

RunResult make_run(const std::string& recipe, std::uint64_t seed, double accuracy,
                   BytesPerParameter bytes) {
  RunResult run;
  run.data = "mnist";
  run.model = "mlp 784-512-512-10";
  run.recipe = recipe;
  run.seed = seed;
  run.epochs = 2;
  run.steps = 858;
  run.seconds = 12.5;
  run.parameters = 668672;
  run.train_loss = 0.01;
  run.test_accuracy = accuracy;
  run.zero_fraction = 0.34;
  run.flips_per_step = 843;
  run.bytes_per_parameter = bytes;
  run.peak_live_bytes = 3 << 20;
  run.weights_sha256 = std::string(60, 'a') + std::to_string(1000 + seed);
  run.curve = {{1, 0.3, 0.91, 0.95}, {2, 0.01, 0.98, 0.97}};
  return run;
}

const BytesPerParameter kMaster{4, 0, 0, 8, 4};
const BytesPerParameter kLatent{1.04, 0.01, 0, 0.08, 0.05};

std::vector<RunResult> two_recipes() {
  return {make_run("latent8", 1, 0.985, kLatent), make_run("latent8", 2, 0.987, kLatent),
          make_run("master", 1, 0.984, kMaster), make_run("master", 2, 0.985, kMaster)};
}

Report report_of(std::vector<RunResult> runs) {
  return {"title", "tritgrad compare", "a machine", "a dataset", std::move(runs)};
}

std::set<std::string> keys(const nlohmann::json& object) {
  std::set<std::string> names;
  for (const auto& item : object.items()) names.insert(item.key());
  return names;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A broken number that was printed as a word ("dominant" is not one).
bool says_nan(const std::string& text) {
  return std::regex_search(text, std::regex("\\b(nan|inf|infinity)\\b", std::regex::icase));
}

TEST_CASE("run result: JSON has exactly the promised keys and values") {
  const nlohmann::json json =
      nlohmann::json::parse(to_json(make_run("latent8", 7, 0.985, kLatent)));
  CHECK(keys(json) == std::set<std::string>{"data",
                                            "model",
                                            "recipe",
                                            "compute",
                                            "seed",
                                            "epochs",
                                            "steps",
                                            "seconds",
                                            "time",
                                            "parameters",
                                            "train_loss",
                                            "val_accuracy",
                                            "test_accuracy",
                                            "zero_fraction",
                                            "flips_per_step",
                                            "bytes_per_parameter",
                                            "peak_live_bytes",
                                            "movable_fraction",
                                            "skipped_updates",
                                            "weights_sha256",
                                            "curve"});
  CHECK(keys(json["bytes_per_parameter"]) ==
        std::set<std::string>{"weights", "scales", "residual", "moments", "gradients", "total"});
  CHECK(json["seed"] == 7);
  CHECK(json["test_accuracy"] == 0.985);
  CHECK(json["val_accuracy"].is_null());
  CHECK(json["bytes_per_parameter"]["total"] == kLatent.total());
  CHECK(json["curve"].size() == 2);
  CHECK(json["curve"][1]["val_accuracy"] == 0.97);
}

TEST_CASE("run result: folds and their spread appear only for cross-validated runs") {
  RunResult run = make_run("latent8", 1, 0.96, kLatent);
  run.folds = 5;
  run.test_accuracy_std = 0.02;
  const nlohmann::json json = nlohmann::json::parse(to_json(run));
  CHECK(json["folds"] == 5);
  CHECK(json["test_accuracy_std"] == 0.02);
}

TEST_CASE("run result: numbers that do not exist are null, and the seed keeps its 64 bits") {
  RunResult run = make_run("naive", std::numeric_limits<std::uint64_t>::max(), kNan, kLatent);
  run.train_loss = kInfinity;
  run.seconds = kNan;
  run.bytes_per_parameter.moments = kNan;
  run.curve = {{1, kNan, -kInfinity, kNan}};
  run.data = "bad \xff\"\n";
  const std::string text = to_json(run);
  CHECK_FALSE(says_nan(text));
  CHECK_FALSE(contains(text, "\n"));
  const nlohmann::json json = nlohmann::json::parse(text);
  CHECK(json["test_accuracy"].is_null());
  CHECK(json["train_loss"].is_null());
  CHECK(json["bytes_per_parameter"]["total"].is_null());
  CHECK(json["curve"][0]["train_loss"].is_null());
  CHECK(json["seed"] == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("run result: several runs are one JSON array") {
  CHECK(nlohmann::json::parse(to_json(std::vector<RunResult>{})).empty());
  CHECK(nlohmann::json::parse(to_json(two_recipes())).size() == 4);
}

TEST_CASE("summary: means, sample deviations and the difference with its standard error") {
  const Comparison comparison = compare(two_recipes(), "master");
  REQUIRE(comparison.recipes.size() == 2);
  const RecipeSummary& master = comparison.recipes[0];
  const RecipeSummary& latent = comparison.recipes[1];
  CHECK(master.is_baseline);
  CHECK(latent.recipe == "latent8");
  CHECK(latent.accuracy->mean == doctest::Approx(0.986));
  // Two values 0.002 apart: deviation 0.002 / sqrt 2.
  CHECK(*latent.accuracy->spread == doctest::Approx(0.002 / std::sqrt(2.0)));
  CHECK_FALSE(master.delta_points);
  CHECK(*latent.delta_points == doctest::Approx(0.15));
  // Variances 2e-6 and 0.5e-6 over two seeds each, in points.
  CHECK(*latent.delta_error == doctest::Approx(100.0 * std::sqrt(1.25e-6)));
  CHECK(*latent.bytes_ratio == doctest::Approx(1.18 / 16));
  CHECK(*latent.seconds_per_epoch == doctest::Approx(6.25));
}

TEST_CASE("summary: one cross-validated seed has the spread of its folds") {
  RunResult run = make_run("latent8", 1, 0.96, kLatent);
  run.folds = 5;
  run.test_accuracy_std = 0.02;
  const Comparison comparison = compare({run}, "master");
  CHECK(describe(comparison.recipes[0]).accuracy == "96.00 ± 2.00");
  CHECK(comparison.recipes[0].accuracy->count == 5);
}

TEST_CASE("summary: validation accuracy stands in when nothing was tested") {
  std::vector<RunResult> runs = two_recipes();
  for (RunResult& run : runs) {
    run.val_accuracy = run.test_accuracy;
    run.test_accuracy.reset();
  }
  const Comparison comparison = compare(runs, "master");
  CHECK(comparison.accuracy_name == "validation accuracy");
  CHECK(describe(comparison.recipes[1]).accuracy == "98.60 ± 0.14");
  CHECK(contains(render_compare_table(runs, "master"), "val acc %"));
}

TEST_CASE("summary: a seed that broke leaves the means of the others") {
  std::vector<RunResult> runs = two_recipes();
  runs[0].test_accuracy = kNan;
  runs[0].train_loss = kInfinity;
  runs[0].epochs = 0;
  const RecipeSummary latent = compare(runs, "master").recipes[1];
  CHECK(latent.accuracy->mean == 0.987);
  CHECK(latent.accuracy->count == 1);
  CHECK_FALSE(latent.accuracy->spread);
  CHECK(*latent.train_loss == 0.01);
  CHECK(*latent.seconds_per_epoch == doctest::Approx(6.25));
}

TEST_CASE("headline: what the best of the smaller recipes costs") {
  CHECK(
      headline(compare(two_recipes(), "master")) ==
      "latent8 gains 0.15 ± 0.11 points of test accuracy against master, a difference within the "
      "noise, with 1.18 bytes per parameter instead of 16.00 (98.60 % against 98.45 %, 2 seeds).");
  std::vector<RunResult> runs = two_recipes();
  runs.push_back(make_run("trits", 1, 0.95, {0.24, 0, 0, 0, 0}));
  CHECK(contains(headline(compare(runs, "master")),
                 " The smallest, trits at 0.24 bytes, loses 3.45 points of test accuracy against "
                 "master."));
}

TEST_CASE("headline: speaks without a baseline, without accuracy and without runs") {
  CHECK(headline(compare({make_run("latent8", 1, 0.985, kLatent)}, "master")) ==
        "latent8 reaches 98.50 % test accuracy with 1.18 bytes per parameter (one seed).");
  RunResult run = make_run("latent8", 1, 0.985, kLatent);
  run.test_accuracy.reset();
  CHECK(headline(compare({run}, "master")) == "latent8 trains with 1.18 bytes per parameter.");
  CHECK(headline(compare({}, "master")) == "No runs to compare.");
}

TEST_CASE("compare table: the numbers of the summary, baseline first") {
  const std::string table = render_compare_table(two_recipes(), "master");
  CHECK(table.find("master ") < table.find("latent8"));
  for (const char* text : {"98.60 ± 0.14", "+0.15", "1.18", "0.074", "6.25", "34.0 %"}) {
    CHECK(contains(table, text));
  }
}

TEST_CASE("report: every number of the summary stands in the page") {
  std::vector<RunResult> runs = two_recipes();
  const std::string html = render_report(report_of(runs));
  CHECK(markup_error(html) == "");
  const Comparison comparison = compare(runs, "master");
  CHECK(contains(html, headline(comparison)));
  for (const RecipeSummary& summary : comparison.recipes) {
    const SummaryText text = describe(summary);
    for (const std::string& cell :
         {text.accuracy, text.delta, text.weights, text.scales, text.residual, text.moments,
          text.gradients, text.total, text.ratio, text.seconds_per_epoch, text.zeros, text.flips,
          text.peak}) {
      CHECK(contains(html, "<td>" + cell + "</td>"));
    }
  }
  for (const RunResult& run : runs) CHECK(contains(html, run.weights_sha256));
}

TEST_CASE("report: nothing is loaded and nothing is run") {
  const std::string html = render_report(report_of(two_recipes()));
  for (const char* part : {"<script", "<link", "<img", "src=", "href=", "url(", "@import"}) {
    CHECK_FALSE(contains(html, part));
  }
}

TEST_CASE("report: all text from outside is escaped") {
  CHECK(escape_markup("<a b=\"c\" d='e'>&\x01") ==
        "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;\uFFFD");
  const std::string evil = "<script>\"'&</title></svg>";
  RunResult run = make_run(evil, 1, 0.9, kLatent);
  run.data = run.model = run.weights_sha256 = evil;
  const Report report{evil, evil, evil, evil, {run, make_run("b", 1, 0.8, kMaster)}, evil};
  const std::string html = render_report(report);
  CHECK_FALSE(contains(html, "<script"));
  CHECK(markup_error(html) == "");
}

TEST_CASE("report: single seed, single recipe, nothing measured, no runs at all") {
  CHECK(markup_error(render_report(report_of({}))) == "");
  const std::string alone = render_report(report_of({make_run("master", 1, 0.9, kMaster)}));
  CHECK(markup_error(alone) == "");
  CHECK_FALSE(contains(alone, "against bytes per parameter"));  // one point is no comparison
  CHECK(contains(render_report(report_of(two_recipes())), "against bytes per parameter"));
  RunResult bare;
  bare.recipe = "bare";
  const std::string html = render_report(report_of({bare}));
  CHECK(markup_error(html) == "");
  CHECK_FALSE(says_nan(html));
  CHECK_FALSE(contains(html, "against bytes per parameter"));  // no accuracy
}

TEST_CASE("report: extreme values neither break the page nor reach it as words") {
  std::vector<RunResult> runs;
  const double extremes[] = {0.0, 1.0, kNan, kInfinity, -kInfinity, 1e300, -1e300, 1e-300};
  for (const double value : extremes) {
    RunResult run =
        make_run("r" + std::to_string(runs.size()), 1, value, {value, value, value, value, value});
    run.train_loss = run.seconds = run.flips_per_step = value;
    run.zero_fraction = run.test_accuracy_std = value;
    run.curve = {{1, value, value, value}, {value, 0.5, 0.5, 0.5}, {3, 1e-9, 1, 1}};
    run.parameters = std::numeric_limits<std::int64_t>::max();
    run.peak_live_bytes = std::numeric_limits<std::int64_t>::max();
    runs.push_back(run);
    const std::string alone = render_report(report_of({run}));
    CHECK(markup_error(alone) == "");
  }
  const std::string html = render_report(report_of(runs));
  CHECK(markup_error(html) == "");
  CHECK_FALSE(says_nan(html));
  CHECK_FALSE(says_nan(render_compare_table(runs, "r0")));
}

TEST_CASE("report: forty recipes still have a place each") {
  std::vector<RunResult> runs;
  for (int i = 0; i < 40; ++i) {
    runs.push_back(make_run("recipe-" + std::to_string(i), 1, 0.9 + 0.001 * i, kLatent));
  }
  CHECK(markup_error(render_report(report_of(runs))) == "");
}

TEST_CASE("report: written to a file, or refused with its name") {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / "tritgrad_test_report.html";
  const Report report = report_of(two_recipes());
  write_report(path.string(), report);
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CHECK(text == render_report(report));
  file.close();
  std::filesystem::remove(path);
  try {
    write_report("/nonexistent-folder/report.html", report);
    FAIL("a report was written into a folder that does not exist");
  } catch (const Error& error) {
    CHECK(contains(error.what(), "/nonexistent-folder/report.html"));
    CHECK(contains(error.what(), "No such file"));
  }
}

TEST_CASE("markup checker: finds what it is there to find") {
  CHECK(markup_error("<p>a<br/>b</p>") == "");
  CHECK(markup_error("<p><b></p></b>") != "");
  CHECK(markup_error("<p>") != "");
  CHECK(markup_error("</p>") != "");
  CHECK(markup_error("<p>a & b</p>") != "");
  CHECK(markup_error("<p a=b></p>") != "");
  CHECK(markup_error("<p>1 > 0</p>") != "");
}

}  // namespace
}  // namespace tritgrad
