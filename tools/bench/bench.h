// All that `tritgrad bench` measures: in rounds, and then as tables or JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/bench/ceilings.h"
#include "tools/bench/optimizer_passes.h"
#include "tools/bench/training_steps.h"

namespace tritgrad {

struct BenchOptions {
  std::vector<std::string> groups{"ceilings", "passes", "steps"};
  std::vector<std::string> models{"mlp:784-1024-1024-10", "mlp:784-4096-4096-10"};
  std::vector<std::string> recipes{"latent8", "votes", "master", "fp32"};
  std::vector<std::int64_t> batches{256, 64};
  int rounds = 7;
  bool quiet = false;  // no progress
};

// The ceiling that bounds a pass, and how near the pass comes to it.
struct PassLimit {
  Ceiling ceiling;
  double bytes_per_parameter;
  std::optional<double> share;
};

struct BenchResults {
  int rounds;
  std::vector<CeilingResult> ceilings;  // those asked for, and those that shares refer to
  std::vector<PassResult> passes;
  std::vector<StepResult> steps;

  // `value`, in the ceiling's unit, as a share of it; empty where that ceiling was not measured.
  std::optional<double> share(Ceiling ceiling, double value) const;
  // A loop that reading bounds pays little for what it also writes, so memory has two ceilings: one
  // of reading, for what a pass reads, and one of a loop which also writes a third of what it
  // moves, for all that the pass moves. The nearer one counts.
  PassLimit limit(const PassResult& pass) const;
};

// Throws Error for options that contradict themselves, before anything is measured.
//
// Every round measures everything once, the ceilings first, so that whatever slows the machine down
// for a while slows down all alike; what counts are medians over the rounds. Throws Interrupted
// after a SIGINT.
BenchResults run_bench(const BenchOptions& options);

std::string render_bench(const BenchResults& results);
// The schema is in FORMATS.md.
std::string bench_json(const BenchResults& results);

}  // namespace tritgrad
