#include "tools/cli/parallel_options.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "engine/check.h"
#include "engine/text.h"
#include "tools/cli/complain.h"

namespace tritgrad {
namespace {

constexpr double kTimeout = 60.0;

double parse_timeout(const std::string& text) {
  constexpr double kMost = 1e6;
  if (text.empty()) return kTimeout;
  const std::optional<double> seconds = parse_number(text);
  check(seconds && *seconds >= 1.0 && *seconds <= kMost, "--dp-timeout: '", text,
        "' is no time to wait; give seconds, 1 to ", kMost);
  return *seconds;
}

void check_method(const CLI::App& command, const ParallelSpec& spec) {
  check(!spec.majority || spec.method == ParallelMethod::kVotes,
        "--dp-majority is a way to count votes; it needs --dp votes");
  const bool squeezes = spec.method == ParallelMethod::kApmsqueeze;
  check(command.count("--dp-warmup") == 0 || squeezes,
        "--dp-warmup: only apmsqueeze has a warm-up; leave the option "
        "out or use --dp apmsqueeze");
  check(command.count("--dp-scale") == 0 || squeezes,
        "--dp-scale: only apmsqueeze scales signs; leave the option "
        "out or use --dp apmsqueeze");
}

void end_process(const std::string& sentence) {
  std::fflush(stdout);
  std::_Exit(complain(sentence));
}

}  // namespace

std::unique_ptr<Communicator> connect(const CLI::App& command, const std::string& timeout,
                                      TrainOptions& train) {
  const double seconds = parse_timeout(timeout);
  const bool resumed = !train.resume.empty();
  check_method(command, train.parallel);
  if (train.parallel.method == ParallelMethod::kNone) {
    check(!resumed || launched_ranks() == 1, "there are ", launched_ranks(),
          " ranks, but the checkpoint '", train.resume,
          "' is of a run without --dp; resume it without mpirun");
    check(launched_ranks() == 1, "there are ", launched_ranks(),
          " ranks, which would all train the same; choose how they work together: --dp allreduce, "
          "apmsqueeze or votes");
    check(timeout.empty(),
          "--dp-timeout: without --dp there are no other ranks to wait "
          "for; leave the option out or name a method by --dp");
    return nullptr;
  }
  std::unique_ptr<Communicator> ranks = connect_ranks(seconds, end_process);
  train.ranks = ranks.get();
  const bool parts_are_given = command.count("--micro-batches") > 0;
  if (!parts_are_given && !resumed) train.micro_batches = ranks->size();
  // A resumed run keeps its parts, though some ranks may have none then.
  check(resumed || train.micro_batches >= ranks->size(), "--micro-batches ", train.micro_batches,
        ": ", ranks->size(), " ranks need a part each; give ", ranks->size(),
        " or more, or start fewer ranks");
  return ranks;
}

}  // namespace tritgrad
