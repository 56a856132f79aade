// tritgrad compare: recipes x seeds on the same splits and the same order of rows.
#include <fmt/format.h>

#include <algorithm>

#include "engine/check.h"
#include "engine/kernel_table.h"
#include "engine/nearest.h"
#include "engine/parallel.h"
#include "models/recipe.h"
#include "ops/dense_product.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/compare_table.h"
#include "tools/report_html.h"

namespace tritgrad {
namespace {

struct CompareOptions {
  CommonOptions common;
  std::vector<std::string> recipes{"fp32", "master", "votes", "latent8"};
  int seeds = 3;
  std::string report;
  std::string command_line;
};

std::string machine_line() {
  return fmt::format("tritgrad {}, {} kernels and {}, {} thread{}", TRITGRAD_VERSION,
                     kernels().name, dense_product_library(), thread_count(),
                     thread_count() == 1 ? "" : "s");
}

std::string dataset_line(const Dataset& dataset, const TrainOptions& options) {
  const std::string split =
      options.folds > 0 ? fmt::format("{}-fold cross-validation", options.folds)
      : dataset.published_test_rows > 0
          ? fmt::format("the published test set of {} rows", dataset.published_test_rows)
          : "a fixed, stratified test split of 20 %";
  return fmt::format("{}: {} rows, {} features, {} classes; {}", dataset.name, dataset.rows,
                     dataset.features, dataset.class_names.size(), split);
}

// All recipes are read before the first run, so that a mistyped one costs no time.
void check_recipes(const CompareOptions& options) {
  for (const std::string& recipe : options.recipes) {
    load_recipe(recipe, options.common.train.overrides);
    check(std::count(options.recipes.begin(), options.recipes.end(), recipe) == 1, "--recipes: '",
          recipe, "' is named twice");
  }
}

void run_compare(CompareOptions& options) {
  apply(options.common);
  if (options.recipes == std::vector<std::string>{"all"}) options.recipes = recipe_names();
  check_writable("--report", options.report);
  check_recipes(options);
  const Dataset dataset = open_data(options.common);
  const bool talk = !options.common.train.quiet && options.common.json != "-";
  std::vector<RunResult> runs;
  for (const std::string& recipe : options.recipes) {
    for (int seed = 1; seed <= options.seeds; ++seed) {
      TrainOptions run = options.common.train;
      run.recipe = recipe;
      run.seed = static_cast<std::uint64_t>(seed);
      runs.push_back(train(dataset, run));
      if (talk) {
        fmt::print(stderr, "{:<17} seed {}  test accuracy {:6.2f} %  {:5.1f} s\n",
                   runs.back().recipe, seed, 100.0 * runs.back().test_accuracy.value_or(0.0),
                   runs.back().seconds);
      }
    }
  }
  write_json(options.common.json, to_json(runs));
  const std::string data = dataset_line(dataset, options.common.train);
  if (talk) {
    fmt::print("\n{}\n{}, {} seeds\n\n{}", data, options.common.train.model, options.seeds,
               render_compare_table(runs, "master"));
  }
  if (options.report.empty()) return;
  write_report(options.report,
               {.title = fmt::format("{} on {}", options.common.train.model, dataset.name),
                .command = options.command_line,
                .machine = machine_line(),
                .dataset = data,
                .runs = runs,
                .baseline = "master"});
  if (talk) fmt::print("\nreport: {}\n", options.report);
}

// As a shell wants it.
std::string quoted(const std::string& value) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@";
  if (!value.empty() && value.find_first_not_of(kPlain) == std::string::npos) return value;
  std::string text = "'";
  for (char c : value) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// The command that repeats the comparison, from the options as they were read.
std::string repeat_command(const CLI::App& command) {
  std::string text = "tritgrad compare";
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    text += " --" + option->get_lnames().front();
    if (option->get_items_expected_max() == 0) continue;
    for (const std::string& value : option->results()) text += " " + quoted(value);
  }
  return text;
}

}  // namespace

void add_compare_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("compare", "recipes x seeds on the same data: accuracy, bytes, time");
  auto options = std::make_shared<CompareOptions>();
  add_data_options(*command, options->common);
  add_training_options(*command, options->common);
  command
      ->add_option("--recipes", options->recipes,
                   "names or files, separated by commas; all = every built-in one")
      ->delimiter(',')
      ->take_all()
      ->capture_default_str();
  command->add_option("--seeds", options->seeds, "seeds 1..N for every recipe")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->add_option("--report", options->report, "write a page with pictures to FILE.html");
  command->footer(
      "Examples:\n"
      "  tritgrad compare --data wdbc --recipes fp32,master,votes,latent8 --seeds 3 --report "
      "r.html\n"
      "  tritgrad compare --data digits --model mlp:64,64 --folds 5 --val 0.1\n"
      "Learning rates belong to the recipes: --lr and --set act on all of them alike.");
  command->callback([command, options] {
    options->command_line = repeat_command(*command);
    run_compare(*options);
  });
}

}  // namespace tritgrad
