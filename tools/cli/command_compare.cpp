// tritgrad compare trains recipes x seeds on the same splits and the same order of rows.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <filesystem>
#include <span>

#include "engine/check.h"
#include "engine/files/read_file.h"
#include "engine/text.h"
#include "tools/cli/command_line.h"
#include "tools/cli/commands.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output_file.h"
#include "tools/cli/terminal.h"
#include "tools/cli/training_observer.h"
#include "tools/compare/report.h"
#include "tools/compare/request.h"
#include "tools/report/number_text.h"
#include "tools/report/page.h"
#include "tools/report/system_info.h"

namespace tritgrad {
namespace {

struct CompareCommand {
  ComparisonRequest single;
  std::string plan;
  std::string report;
  bool fresh = false;
};

std::vector<ComparisonRequest> requests_of(const CLI::App& app, CompareCommand& command) {
  prepare(command.single, app);
  if (app.get_option("--plan")->count() == 0) return {command.single};
  for (const CLI::Option* option : app.get_options()) {
    const std::vector<std::string> allowed = {"plan",  "report", "json",    "quiet",
                                              "fresh", "cache",  "threads", "config"};
    check(option->count() == 0 || std::find(allowed.begin(), allowed.end(),
                                            option->get_lnames().front()) != allowed.end(),
          "--", option->get_lnames().front(),
          ": the plan describes the comparisons; write it there, or leave --plan out");
  }
  return read_plan(command.plan, command.single.common.terminal.cache);
}

// Puts "plan 'FILE', the comparison in line N: " in front of an Error of `work` for a comparison of
// a plan.
template <typename Work>
void name_place(const ComparisonRequest& request, const Work& work) {
  try {
    work();
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    if (request.where.empty()) throw;
    fail(request.where, ": ", error.what());
  }
}

// Throws Error where an output would replace a file that the plan or its comparisons read.
void check_no_inputs(const CompareCommand& command,
                     const std::vector<ComparisonRequest>& requests) {
  const auto check_outputs = [&](const std::vector<InputFile>& inputs) {
    check_no_input("--json", command.single.common.json, inputs);
    check_no_input("--report", command.report, inputs);
  };
  check_outputs({{"--plan", command.plan}, {"--config", command.single.common.config}});
  for (const ComparisonRequest& request : requests) {
    std::vector<InputFile> inputs = input_files(request.common);
    for (const std::string& recipe : request.options.recipes) {
      inputs.push_back(recipe_file("--recipes", recipe));
    }
    name_place(request, [&] { check_outputs(inputs); });
  }
}

// Reads all data before the first run, so that a mistake costs no time.
RemainingTime check_all(const std::vector<ComparisonRequest>& requests) {
  RemainingTime remaining;
  for (const ComparisonRequest& request : requests) {
    name_place(request, [&] {
      check(!is_pipe(request.common.train.data), "--data: a comparison reads its data more than ",
            "once, which a pipe does not allow; write the table to a file and name it");
      const Dataset dataset = open_data(request.common);
      say_remarks(dataset.remarks, request.common.terminal.quiet);
      check_comparison(dataset, request.options);
      check_published(request.published, metric_of(dataset));
      remaining.expect(expected_work(dataset, request.options));
    });
  }
  return remaining;
}

// "accuracy  98.25 %", "RMSE 53.13".
std::string score_words(double score, Metric metric) {
  return metric == Metric::kAccuracy
             ? fmt::format("accuracy {:6.2f} %", 100.0 * score)
             : fmt::format("{} {}", to_text(metric), score_unit(metric, score).text(score));
}

// Prints a line for a run; it begins with `data` where there are several comparisons.
void print_run(const FinishedRun& finished, const RemainingTime& remaining,
               const std::string& data) {
  const RunResult& run = finished.run;
  const bool trial = finished.tuning_factor > 0.0;
  const std::optional<double>& score = trial ? run.val_score : run.test_score;
  const std::string what = trial ? fmt::format("rate × {:.3g}", finished.tuning_factor)
                                 : fmt::format("seed {}", run.seed);
  const std::string outcome =
      score ? fmt::format("{} {}", trial ? "validation" : "test", score_words(*score, run.metric))
            : "diverged: " + run.diverged;
  print_lines(stderr, "{}{:<17} {:<11} {}  {:5.1f} s{}  [{}]\n", data, run.recipe, what, outcome,
              run.seconds, run.cached ? ", cached" : "", remaining.text());
}

// Prints the warnings of a run however quiet the command is to be. A run that was not cached has
// printed its own.
void print_warnings(const FinishedRun& finished) {
  if (finished.run.cached) {
    for (const std::string& warning : finished.run.warnings) {
      print_recipe_warning(finished.run.recipe, warning);
    }
  }
  if (!finished.not_kept.empty()) {
    print_lines(stderr, "warning: this run could not be kept: {}\n", finished.not_kept);
  }
}

// Returns `command` after the commands that fetch the data, each of which has a line and comes
// once.
std::string with_fetches(std::span<const ComparisonRequest> requests, const std::string& command) {
  std::string text;
  for (const ComparisonRequest& request : requests) {
    const std::string fetch = fetch_command(request.common);
    if (fetch.empty() || text.find(fetch + '\n') != std::string::npos) continue;
    text += fetch + '\n';
  }
  return text + command;
}

// Runs one comparison after the other and appends each to `records`, so that finished ones outlive
// a failure.
void compare_all(const std::vector<ComparisonRequest>& requests, const RunCache& cache,
                 RemainingTime& remaining, const TerminalOptions& terminal, bool talk,
                 std::vector<ComparisonRecord>& records) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    ComparisonOptions options = requests[i].options;
    name_place(requests[i], [&] {
      const Dataset dataset = open_data(requests[i].common);
      const std::string data = requests.size() > 1 ? fmt::format("{:<14} ", dataset.name) : "";
      TerminalObserver observer(options.train, terminal);
      options.train.observer = &observer;
      records.push_back(run_comparison(dataset, options, cache, [&](const FinishedRun& finished) {
        remaining.finished(i, finished.run.epochs, finished.run.seconds);
        print_warnings(finished);
        if (talk) print_run(finished, remaining, data);
      }));
      records.back().dataset = dataset_line(dataset, options.train);
      records.back().title = requests[i].title;
      records.back().published = requests[i].published;
      records.back().command = with_fetches({&requests[i], 1}, requests[i].command);
    });
    if (!talk) continue;
    const ComparisonRecord& record = records.back();
    const RunResult& run = record.runs.front();
    const std::string labels = label_words(run), pixels = pixel_words(run);
    print_lines(stdout, "\n{}\n{}, {}{}{}\n\n{}\n", record.dataset, record.model,
                counted(options.seeds, "seed"), labels.empty() ? "" : ", " + labels,
                pixels.empty() ? "" : ", " + pixels, render_terminal_table(record));
  }
}

void run_compare(const CLI::App& app, CompareCommand& command) {
  const CommonOptions& common = command.single.common;
  std::vector<ComparisonRequest> requests = requests_of(app, command);
  check_no_inputs(command, requests);
  OutputFile json("--json", common.json, kJsonBegins);
  check_report_path(command.report);
  RemainingTime remaining = check_all(requests);
  const PictureFolder pictures(command.report);
  const RunCache cache(cache_folder(common.terminal.cache) / "runs", command.fresh);
  const bool talk = !common.terminal.quiet && common.json != "-";
  std::vector<ComparisonRecord> records;
  std::exception_ptr failure;
  try {
    const InterruptWatch watch;
    compare_all(requests, cache, remaining, common.terminal, talk, records);
  } catch (const Interrupted&) {
    failure = std::make_exception_ptr(Interrupted(
        command.fresh ? "interrupted; finished runs are kept: without --fresh the same command "
                        "goes on from there"
                      : "interrupted; finished runs are kept, and the same command goes on from "
                        "there"));
  } catch (const Error&) {
    failure = std::current_exception();
  }
  if (failure && records.empty()) std::rethrow_exception(failure);
  // Finished comparisons are written in spite of a failure, but replace no older result.
  const auto stays = [&](const std::string& path) {
    if (!failure || path == "-" || !std::filesystem::is_regular_file(path)) return false;
    print_lines(stderr, "note: '{}' stays as it was, as this comparison is not complete\n", path);
    return true;
  };
  if (!stays(common.json)) json.write(to_json(records, describe_machine()));
  if (!command.report.empty() && !stays(command.report)) {
    const std::string repeat = with_fetches(requests, repeat_command(app));
    write_page(command.report, make_page({repeat, describe_machine(), records}));
    if (talk) print_lines(stdout, "report: {}\n", printable(command.report));
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

void add_compare_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "compare", "recipes x seeds on the same data: accuracy or RMSE, bytes, time");
  auto options = std::make_shared<CompareCommand>();
  add_comparison_options(*command, options->single);
  command->add_option(
      "--plan", options->plan,
      "FILE.toml with [[comparison]] tables, whose keys are these options; their tables "
      "[[comparison.published]] are what others report: name, score, protocol, and "
      "spread and bytes where they are known");
  command->add_option("--report", options->report,
                      "write a page to FILE.html, or to FILE.md with pictures in the folder FILE");
  command->add_flag("--fresh", options->fresh,
                    "train everything anew, whatever is left of earlier comparisons");
  command->footer(
      "Examples:\n"
      "  tritgrad compare --data wdbc --recipes fp32,master,votes,latent8 --seeds 3 --report "
      "r.html\n"
      "  tritgrad compare --data digits --model mlp:64,64 --tune 3 --seeds 5\n"
      "  tritgrad compare --data diabetes --model mlp:16 --recipes master,latent8 --seeds 5\n"
      "  tritgrad compare --plan tools/results.toml --report docs/RESULTS.md\n"
      "Models of classes are compared by accuracy; where labels are numbers to predict (--task), "
      "by RMSE in the units of the label. "
      "Learning rates belong to the recipes: --lr and --set act on all of them alike. Finished "
      "runs are kept in the cache folder, so that an interrupted comparison goes on where it was.");
  command->callback([command, options] { run_compare(*command, *options); });
}

}  // namespace tritgrad
