// Learning rates on trial: the same small grid around every recipe's own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/run_result.h"

namespace tritgrad {

struct TuningCandidate {
  double factor = 1;  // on the recipe's own rate
  double lr = 0;
  std::optional<double> val_accuracy;  // fraction; absent: the run diverged
  double seconds = 0;
  bool cached = false;  // of an earlier comparison, as RunResult has it
  std::vector<EpochPoint> curve = {};
};

struct Tuning {
  std::string recipe;
  std::vector<TuningCandidate> candidates;  // by rising factor
  std::size_t chosen = 0;

  const TuningCandidate& choice() const { return candidates.at(chosen); }
  // Whether the chosen rate is the lowest or the highest tried: a wider grid might find a better.
  bool at_edge() const { return chosen == 0 || chosen + 1 == candidates.size(); }
};

// `count` (>= 1) neighbouring powers of two around 1, rising: 1; 1/2, 1; 1/2, 1, 2; 1/4 .. 2 for
// four; 1/4 .. 4 for five. An even count has one more below 1 than above, because rates that are
// too high are what diverges.
std::vector<double> tuning_factors(int count);

// The highest validation accuracy; of equal ones the factor nearest to 1, the lower of two as near.
// When every candidate diverged, that of factor 1.
std::size_t choose_candidate(const std::vector<TuningCandidate>& candidates);

// The choice in a few words: "0.12 (× 2, edge)".
std::string describe(const Tuning& tuning);

}  // namespace tritgrad
