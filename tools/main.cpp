// tritgrad: train ternary networks without master weights, compare, inspect.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "tools/command_line.h"
#include "tools/commands.h"

int main(int argc, char** argv) {
  CLI::App app{"tritgrad: train neural networks in ternary weights, without master weights",
               "tritgrad"};
  app.require_subcommand(1);
  app.set_version_flag("--version", TRITGRAD_VERSION);
  app.footer(
      "Examples:\n"
      "  tritgrad train --data wdbc --recipe latent8\n"
      "  tritgrad compare --data digits --seeds 3 --report digits.html\n"
      "  tritgrad inspect --model mlp:784-512-512-10 --recipe votes\n"
      "'tritgrad COMMAND --help' says more.");
  tritgrad::add_train_command(app);
  tritgrad::add_eval_command(app);
  tritgrad::add_compare_command(app);
  tritgrad::add_inspect_command(app);
  tritgrad::add_recipes_command(app);
  tritgrad::add_data_command(app);

  try {
    return tritgrad::run_command_line(app, argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tritgrad: {}\n", error.what());
    return 1;
  }
}
