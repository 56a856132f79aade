// `tritgrad bench`: measures everything in rounds, then renders the medians as tables or JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench/ceilings.h"

namespace tritgrad {

struct BenchOptions {
  std::vector<std::string> groups{"ceilings", "passes", "steps"};
  std::vector<std::string> models{"mlp:784-1024-1024-10", "mlp:784-4096-4096-10"};
  std::vector<std::string> recipes{"latent8", "votes", "master", "fp32"};
  std::vector<std::int64_t> batches{256, 64};
  int rounds = 7;
  bool quiet = false;  // no progress
};

struct BenchResults {
  int rounds;
  std::vector<BenchEntry> ceilings;  // those asked for, and those that shares refer to
  std::vector<BenchEntry> passes;
  std::vector<BenchEntry> steps;
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
