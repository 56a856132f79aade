// tritgrad: train ternary networks without master weights, compare, inspect.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>

#include "optim/parallel/communicator.h"
#include "tools/cli/command_line.h"
#include "tools/cli/commands.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/process_start.h"
#include "tools/cli/terminal.h"

namespace {

constexpr const char* kLostOutput =
    "standard output cannot be written; is it closed, or the disk full?";

}  // namespace

int main(int argc, char** argv) {
  tritgrad::open_standard_streams();
  try {
    tritgrad::start_again_if_needed(argv);
  } catch (const tritgrad::Error& error) {
    return tritgrad::print_error(error.what());
  }
  // Where standard output is a file, a limit on the size of files (ulimit -f) is then an error of
  // the write that meets it, as a full disk is, and not the end of the process. The files that the
  // library writes need no such care.
  std::signal(SIGXFSZ, SIG_IGN);
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
  tritgrad::add_export_command(app);
  tritgrad::add_generate_command(app);
  tritgrad::add_compare_command(app);
  tritgrad::add_inspect_command(app);
  tritgrad::add_recipes_command(app);
  tritgrad::add_data_command(app);
  tritgrad::add_reproduce_command(app);
  tritgrad::add_bench_command(app);
  tritgrad::add_traffic_command(app);

  try {
    const int code = tritgrad::run_command_line(app, argc, argv);
    // A full disk behind a redirection often shows only when the last bytes are handed over.
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    return tritgrad::print_error(kLostOutput);
  } catch (const tritgrad::Interrupted& end) {
    tritgrad::print_error(end.what());
    return 128 + tritgrad::noted_signal();
  } catch (const std::exception& error) {
    const int code = tritgrad::print_error(std::ferror(stdout) != 0 ? kLostOutput : error.what());
    tritgrad::abandon_ranks();
    return code;
  }
}
