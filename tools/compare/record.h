// The outcome of one comparison, from which its table, its page and its JSON are made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/training/run_result.h"

namespace tritgrad {

// Learning rates on trial: every recipe has the same number of them, beginning around its own.
struct TuningCandidate {
  double factor = 1;  // the recipe's own rate is multiplied by it
  double lr = 0;
  std::optional<double> val_score;  // fraction; absent: the run diverged
  double seconds = 0;
  bool cached = false;  // as in RunResult: an earlier comparison made the run
  std::vector<EpochPoint> curve = {};
  std::string machine = {};  // as in RunResult
};

struct Tuning {
  std::string recipe;
  std::vector<TuningCandidate> candidates;  // by rising factor
  std::size_t chosen = 0;
  Metric metric = Metric::kAccuracy;  // of the scores

  const TuningCandidate& choice() const { return candidates.at(chosen); }
  // Whether the chosen rate is the lowest or the highest tried: more trials might find a better.
  bool at_edge() const { return chosen == 0 || chosen + 1 == candidates.size(); }
};

// Returns the factor to try after those that were (by rising factor). The first three are 1/2,
// 1, 2. Then, where the best lies at an end, the next power of two beyond that end; otherwise the
// middle (of logarithms) of the wider gap beside the best, of equal gaps that towards the better
// neighbour.
double next_factor(const std::vector<TuningCandidate>& tried, Metric metric);

// Puts a candidate where its factor belongs.
void insert_by_factor(std::vector<TuningCandidate>& candidates, TuningCandidate candidate);

// Chooses the best validation score; of equal ones the factor nearest to 1, the lower of two
// as near. When every candidate diverged, it chooses that of factor 1.
std::size_t choose_candidate(const std::vector<TuningCandidate>& candidates, Metric metric);

// Describes the choice in a few words: "0.12 (× 2, edge)".
std::string describe(const Tuning& tuning);

// The bytes of a matrix of weights, see bytes_per_weight(); absent for models without one.
struct WeightBytes {
  std::string recipe;
  std::optional<double> per_weight;
};

// What others report of the network that a comparison trains. Nothing of it is measured here.
struct PublishedResult {
  std::string name;              // of their method
  double score = 0;              // as tables write it: an accuracy in %
  std::optional<double> spread;  // likewise; `protocol` says of what
  std::optional<double> bytes;   // per trained parameter
  std::string protocol;          // one line: how it came about
};

struct ComparisonRecord {
  std::string title;    // on the page; empty: the model on the data
  std::string data;     // name of the data set
  std::string dataset;  // one line: name, size, how it was split
  std::string model;
  std::string command;          // repeats the comparison when typed into a shell
  std::string baseline;         // name of the recipe that the others are compared with
  std::vector<Tuning> tunings;  // by recipe, in the order of the runs; empty: rates as they are
  std::vector<RunResult> runs;  // recipes in their order, seeds 1, 2, ... of each
  std::vector<WeightBytes> weight_bytes;        // by recipe, in the order of the runs
  std::int64_t tokens_per_epoch = 0;            // that a run is trained on; 0: the data are no text
  std::vector<PublishedResult> published = {};  // in the order in which tables show them

  // Returns the wall time of all runs, those of the tuning included, whenever they were made.
  double seconds() const;
};

// Returns {"tritgrad": version, "machine": ..., "comparisons": [...]}, which FORMATS.md describes.
std::string to_json(const std::vector<ComparisonRecord>& records, const std::string& machine);

}  // namespace tritgrad
