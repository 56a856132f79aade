// Learning rates on trial: the same number of them for every recipe, beginning around its own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "models/training/run_result.h"

namespace tritgrad {

struct TuningCandidate {
  double factor = 1;  // on the recipe's own rate
  double lr = 0;
  std::optional<double> val_accuracy;  // fraction; absent: the run diverged
  double seconds = 0;
  bool cached = false;  // of an earlier comparison, as RunResult has it
  std::vector<EpochPoint> curve = {};
  std::string machine = {};  // as RunResult has it
};

struct Tuning {
  std::string recipe;
  std::vector<TuningCandidate> candidates;  // by rising factor
  std::size_t chosen = 0;

  const TuningCandidate& choice() const { return candidates.at(chosen); }
  // Whether the chosen rate is the lowest or the highest tried: more trials might find a better.
  bool at_edge() const { return chosen == 0 || chosen + 1 == candidates.size(); }
};

// The factor to try after those that were (by rising factor). The first three are 1/2, 1 and 2.
// Then, where the best lies at an end, the next power of two beyond that end; otherwise the middle
// (of logarithms) of the wider gap beside the best, of equal gaps that towards the better
// neighbour.
double next_factor(const std::vector<TuningCandidate>& tried);

// Puts a candidate where its factor belongs.
void insert_by_factor(std::vector<TuningCandidate>& candidates, TuningCandidate candidate);

// The highest validation accuracy; of equal ones the factor nearest to 1, the lower of two as near.
// When every candidate diverged, that of factor 1.
std::size_t choose_candidate(const std::vector<TuningCandidate>& candidates);

// The choice in a few words: "0.12 (× 2, edge)".
std::string describe(const Tuning& tuning);

}  // namespace tritgrad
