// tritgrad bench shows how fast this machine runs updates and training steps, beside what it could
// do at best.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "engine/memory/parallel.h"
#include "tools/bench/bench.h"
#include "tools/cli/commands.h"
#include "tools/cli/common_options.h"
#include "tools/cli/output_file.h"
#include "tools/report/system_info.h"

namespace tritgrad {
namespace {

struct BenchCommand {
  BenchOptions bench;
  int threads = 1;
  std::string json;
};

void run(const BenchCommand& command) {
  std::vector<InputFile> recipes;
  for (const std::string& name : command.bench.recipes) {
    recipes.push_back(recipe_file("--recipe", name));
  }
  check_no_input("--json", command.json, recipes);
  OutputFile json("--json", command.json, kJsonBegins);
  set_thread_count(command.threads);
  const BenchResults results = run_bench(command.bench);
  if (command.json != "-" && !command.bench.quiet) {
    fmt::print("{}\nmedians of {} round{}\n\n{}", describe_machine(), results.rounds,
               results.rounds == 1 ? "" : "s", render_bench(results));
  }
  json.write(bench_json(results));
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("bench", "speed of updates and training steps on this machine");
  auto options = std::make_shared<BenchCommand>();
  BenchOptions& bench = options->bench;
  command
      ->add_option("--only", bench.groups, "groups, separated by commas: ceilings, passes, steps")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option("--model", bench.models,
                   "of the steps: all widths, such as mlp:784-512-512-10 or "
                   "conv:32x32x3-32-M-64-10, or llama:4,256 (of bytes); may be repeated")
      ->capture_default_str();
  command
      ->add_option("--recipe", bench.recipes,
                   "of the steps: names or FILE.toml, separated by commas")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option("--batch", bench.batches,
                   "of the steps: rows, of a language model windows, separated by commas")
      ->delimiter(',')
      ->capture_default_str()
      ->check(in_range(1, 1000000));
  command
      ->add_option("--rounds", bench.rounds,
                   "times that everything is measured; medians are reported")
      ->capture_default_str()
      ->check(in_range(1, 1000));
  command->add_option("--threads", options->threads, "threads of everything, ceilings too")
      ->capture_default_str()
      ->check(in_range(1, 1024));
  command->add_option("--json", options->json, "write as JSON to FILE, - = standard output");
  command->add_flag("--quiet", bench.quiet, "no progress, no tables");
  command->footer(
      "Examples:\n"
      "  tritgrad bench --only ceilings,passes\n"
      "  tritgrad bench --only steps --model mlp:784-1024-1024-10 --recipe eco,dqt --batch 256\n"
      "  tritgrad bench --only steps --model llama:4,256 --recipe latent8-lm --batch 8\n"
      "  tritgrad bench --only steps --model conv:32x32x3-32-M-64-M-10 --recipe latent8 --batch "
      "128\n"
      "  tritgrad bench --json bench.json --quiet\n"
      "All of it takes some minutes. A share is of a ceiling measured in the same rounds.");
  command->callback([options] { run(*options); });
}

}  // namespace tritgrad
