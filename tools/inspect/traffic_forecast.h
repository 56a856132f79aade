// The bytes that data-parallel training sends, by formula: every way of doing it beside the others,
// for any number of ranks and any speed of the links between them (`tritgrad inspect --dp all`).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/networks/model.h"
#include "optim/parallel/forecast.h"

namespace tritgrad {

// A way to train in parallel that is worth a row, with a recipe of its own.
struct TrafficWay {
  std::string name;
  Recipe recipe;
  ParallelSpec spec;
  double warmup = 0.0;  // share of the steps; 0: steps after it
};
std::vector<TrafficWay> traffic_ways();

// Returns the mean over the steps of what a rank sends for `model`, a complete spec. Throws Error
// unless the way can have so many parts of a batch.
TrafficForecast forecast_traffic(const TrafficWay& way, const std::string& model, int ranks,
                                 int parts);

struct TrafficQuestion {
  std::string model;          // a complete spec
  std::vector<int> ranks;     // each is asked about
  int parts = 0;              // micro-batches of all ranks; 0: one for each rank
  std::vector<double> links;  // Gbit/s
};

// A table with a row for every way and number of ranks, and what its columns mean. Throws Error
// where ranks cannot share the micro-batches evenly.
std::string traffic_table(const TrafficQuestion& question);
// Returns the rows of that table as JSON (docs/FORMATS.md).
std::string traffic_json(const TrafficQuestion& question);

}  // namespace tritgrad
