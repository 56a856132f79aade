// Runs that nobody made, for tests of what is said about runs.
#pragma once

#include <limits>
#include <regex>
#include <string>
#include <vector>

#include "models/training/run_result.h"
#include "tools/compare/report.h"

namespace tritgrad::test {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline RunResult make_run(const std::string& recipe, std::uint64_t seed, double accuracy,
                          BytesPerParameter bytes) {
  RunResult run;
  run.data = "mnist";
  run.model = "mlp 784-512-512-10";
  run.recipe = recipe;
  run.compute = "int8";
  run.lr = 0.06;
  run.seed = seed;
  run.epochs = 2;
  run.batch = 128;
  run.steps = 858;
  run.seconds = 12.5;
  run.parameters = 668672;
  run.train_loss = 0.01;
  run.test_score = accuracy;
  run.zero_fraction = 0.34;
  run.flips_per_step = 843;
  run.bytes_per_parameter = bytes;
  run.peak_live_bytes = 3 << 20;
  run.data_bytes = 5 << 20;
  run.weights_sha256 = std::string(60, 'a') + std::to_string(1000 + seed);
  run.optimizer_sha256 = std::string(60, 'b') + std::to_string(1000 + seed);
  run.curve = {{1, 0.3, 0.91, 0.95}, {2, 0.01, 0.98, 0.97}};
  return run;
}

inline const BytesPerParameter kMaster{4, 0, 0, 8, 4};
inline const BytesPerParameter kLatent{1.04, 0.01, 0, 0.08, 0.05};

inline std::vector<RunResult> two_recipes() {
  return {make_run("latent8", 1, 0.985, kLatent), make_run("latent8", 2, 0.987, kLatent),
          make_run("master", 1, 0.984, kMaster), make_run("master", 2, 0.985, kMaster)};
}

inline ComparisonRecord record_of(std::vector<RunResult> runs) {
  ComparisonRecord record;
  record.data = "mnist";
  record.dataset = "a dataset";
  record.model = "mlp:512,512";
  record.command = "tritgrad compare --data mnist";
  record.baseline = "master";
  record.runs = std::move(runs);
  return record;
}

inline Report report_of(std::vector<RunResult> runs) {
  return {"tritgrad compare", "a machine", {record_of(std::move(runs))}};
}

inline std::string html_of(std::vector<RunResult> runs) {
  return render_html(make_page(report_of(std::move(runs))));
}

// A broken number that was printed as a word ("dominant" is not one).
inline bool says_nan(const std::string& text) {
  return std::regex_search(text, std::regex("\\b(nan|inf|infinity)\\b", std::regex::icase));
}

}  // namespace tritgrad::test
