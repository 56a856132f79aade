#include "tools/cli/parallel_options.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "engine/check.h"
#include "engine/text.h"
#include "models/training/parallel_run.h"
#include "tools/cli/complain.h"

namespace tritgrad {
namespace {

constexpr double kTimeout = 60.0;

std::optional<double> parse_warmup(const std::string& text) {
  if (text.empty()) return ParallelSpec{}.warmup;
  if (text == "auto") return std::nullopt;
  const std::optional<double> share = parse_number(text);
  check(share && *share > 0.0 && *share <= 1.0, "--dp-warmup: '", text,
        "' is no share of the steps; give a number above 0, at most 1, or auto");
  return share;
}

Compression parse_scale(const std::string& text) {
  check(text.empty() || text == "mean" || text == "rms", "--dp-scale: '", text,
        "', expected mean or rms");
  return text == "rms" ? Compression::kSignRms : Compression::kSign;
}

double parse_timeout(const std::string& text) {
  constexpr double kMost = 1e6;
  if (text.empty()) return kTimeout;
  const std::optional<double> seconds = parse_number(text);
  check(seconds && *seconds >= 1.0 && *seconds <= kMost, "--dp-timeout: '", text,
        "' is no time to wait; give seconds, 1 to ", kMost);
  return *seconds;
}

ParallelSpec parse(const ParallelOptions& options, ParallelMethod method) {
  ParallelSpec spec;
  spec.method = method;
  spec.majority = options.majority;
  spec.warmup = parse_warmup(options.warmup);
  spec.squeeze = parse_scale(options.scale);
  check(!spec.majority || method == ParallelMethod::kVotes,
        "--dp-majority is a way to count votes; it needs --dp votes");
  const bool squeezes = method == ParallelMethod::kApmsqueeze;
  check(options.warmup.empty() || squeezes,
        "--dp-warmup: only apmsqueeze has a warm-up; leave the option "
        "out or use --dp apmsqueeze");
  check(options.scale.empty() || squeezes,
        "--dp-scale: only apmsqueeze scales signs; leave the option "
        "out or use --dp apmsqueeze");
  return spec;
}

ParallelSpec parse(const ParallelOptions& options) {
  return parse(options,
               options.method.empty() ? ParallelMethod::kNone : parse_method(options.method));
}

// What was given must be what the checkpoint has.
void check_resumed(const ParallelOptions& options, const TrainOptions& train) {
  const ParallelSpec& saved = train.parallel;
  const auto keep = [&](const char* name, bool is_given, std::string_view given,
                        std::string_view kept) {
    check(!is_given || given == kept, name, ": '", given, "' contradicts the checkpoint '",
          train.resume, "', which has '", kept, "'; leave the option out");
  };
  if (!options.method.empty()) {
    keep("--dp", true, method_name(parse_method(options.method)), method_name(saved.method));
  }
  const ParallelSpec spec = parse(options, saved.method);
  keep("--dp-majority", options.majority, "true", saved.majority ? "true" : "false");
  keep("--dp-warmup", !options.warmup.empty(), warmup_text(spec), warmup_text(saved));
  keep("--dp-scale", !options.scale.empty(), scale_text(spec), scale_text(saved));
}

void end_process(const std::string& sentence) {
  std::fflush(stdout);
  std::_Exit(complain(sentence));
}

}  // namespace

void add_parallel_options(CLI::App& command, ParallelOptions& options) {
  command.add_option("--dp", options.method,
                     "train on all processes that mpirun started: allreduce (gradients), votes "
                     "(sign votes as integers), apmsqueeze (Adam's momentum in 1 bit) [none]");
  command.add_flag("--dp-majority", options.majority,
                   "votes: move by the majority rather than by the mean vote");
  command.add_option("--dp-warmup", options.warmup,
                     "apmsqueeze: share of the steps in full precision, or auto: until the second "
                     "moment is stable [0.2]");
  command.add_option("--dp-scale", options.scale, "apmsqueeze: scale of signs, mean or rms [mean]");
  command.add_option("--dp-timeout", options.timeout,
                     "seconds to wait for another rank before giving up [60]");
}

std::unique_ptr<Communicator> connect(const ParallelOptions& options, bool parts_are_given,
                                      TrainOptions& train) {
  const double timeout = parse_timeout(options.timeout);
  const bool resumed = !train.resume.empty();
  if (resumed) {
    check_resumed(options, train);
  } else {
    train.parallel = parse(options);
  }
  if (train.parallel.method == ParallelMethod::kNone) {
    check(!resumed || launched_ranks() == 1, "there are ", launched_ranks(),
          " ranks, but the checkpoint '", train.resume,
          "' is of a run without --dp; resume it without mpirun");
    check(launched_ranks() == 1, "there are ", launched_ranks(),
          " ranks, which would all train the same; choose how they work together: --dp allreduce, "
          "apmsqueeze or votes");
    check(options.timeout.empty(),
          "--dp-timeout: without --dp there are no other ranks to wait "
          "for; leave the option out or name a method by --dp");
    return nullptr;
  }
  std::unique_ptr<Communicator> ranks = connect_ranks(timeout, end_process);
  train.ranks = ranks.get();
  if (!parts_are_given && !resumed) train.micro_batches = ranks->size();
  // A resumed run keeps its parts, though some ranks may have none then.
  check(resumed || train.micro_batches >= ranks->size(), "--micro-batches ", train.micro_batches,
        ": ", ranks->size(), " ranks need a part each; give ", ranks->size(),
        " or more, or start fewer ranks");
  return ranks;
}

}  // namespace tritgrad
