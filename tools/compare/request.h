// A comparison as the command line or a plan asks for it.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/common_options.h"
#include "tools/compare/run_comparison.h"

namespace CLI {
class App;
}

namespace tritgrad {

struct ComparisonRequest {
  CommonOptions common;
  std::string title;                       // on the page; empty: the model on the data
  ComparisonOptions options;               // `train` is common.train, filled in by prepare()
  std::vector<PublishedResult> published;  // of a plan
  std::string command;                     // repeats the comparison when typed into a shell
  std::string where;                       // plan and line; empty where the command line asks
};

// Adds --data to --tune-epochs, and --title, bound to the request, which must outlive `app`.
void add_comparison_options(CLI::App& app, ComparisonRequest& request);

// Puts all built-in recipes, those that are for language models or the others, in place of "all".
// Throws Error where other names stand beside it.
void expand_all_recipes(std::vector<std::string>& recipes, bool for_language_models);

// Must be called once after the options were read into `app`, which is named compare.
void prepare(ComparisonRequest& request, const CLI::App& app);

// Reads the [[comparison]] tables of FILE.toml, in their order; their keys are names of options.
// Keys above the first table are those of every comparison that has none of its own. Options that
// concern the whole program (threads, json, quiet, cache, config) are refused; `cache` is that of
// the command line. Tables [[comparison.published]] are what others report (PublishedResult): name,
// score, protocol, and where they are known spread and bytes. Throws Error with file and line.
std::vector<ComparisonRequest> read_plan(const std::string& path, const std::string& cache);

// Throws Error for a published accuracy above 100 %: the metric is known when the data are read.
void check_published(const std::vector<PublishedResult>& results, Metric metric);

}  // namespace tritgrad
