// All that `tritgrad bench` measures, in rounds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/bench/ceilings.h"
#include "tools/bench/status_line.h"
#include "tools/bench/training_steps.h"

namespace tritgrad {

struct BenchOptions {
  std::vector<std::string> groups{"ceilings", "kernels", "passes", "steps"};
  std::vector<std::string> models{"mlp:784-1024-1024-10", "mlp:784-4096-4096-10"};
  std::vector<std::string> recipes{"latent8", "votes", "master", "fp32"};
  std::vector<std::int64_t> batches{256, 64};
  int rounds = 7;
};

struct KernelResult {
  std::string name, unit;
  double value;
  std::optional<Ceiling> ceiling;
};

struct PassResult {
  std::string name;
  double parameters_per_second;
  double bytes_read_per_parameter, bytes_per_parameter;
};

// What bounds a pass, and how near it comes.
struct PassLimit {
  Ceiling ceiling;
  double bytes_per_parameter;
  std::optional<double> share;
};

struct BenchResults {
  int rounds;
  std::vector<CeilingResult> ceilings;  // those asked for, and those that shares refer to
  std::vector<KernelResult> kernels;
  std::vector<PassResult> passes;
  std::vector<StepResult> steps;

  // `value`, in the ceiling's unit, as a share of it; none where it was not measured.
  std::optional<double> share(Ceiling ceiling, double value) const;
  // What is written beside what is read costs a loop little where reading is what bounds it, so
  // memory has two ceilings: that of reading, for what a pass reads, and that of a loop which also
  // writes a third of what it moves, for all that the pass moves. The nearer one counts.
  PassLimit limit(const PassResult& pass) const;
};

// Throws Error for options that contradict themselves, before anything is measured.
//
// Every round measures everything once, the ceilings first, so that whatever slows the machine down
// for a while slows down all alike; what counts are medians over the rounds. Throws Interrupted
// after a SIGINT.
BenchResults run_bench(const BenchOptions& options, StatusLine& status);

}  // namespace tritgrad
