// What data-parallel training sends: forecasts for all methods, and a page that says where they
// lead.
#pragma once

#include <string>
#include <vector>

#include "models/model.h"
#include "optim/parallel/forecast.h"
#include "optim/parallel/vote_codes.h"
#include "tools/run_result.h"

namespace tritgrad {

// Bytes that a rank sends for a step of `model`, a complete spec, trained by `recipe`.
TrafficForecast forecast_traffic(const std::string& model, const ModelInput& input,
                                 std::int64_t outputs, const Recipe& recipe,
                                 const ParallelSpec& spec, int ranks, int parts);

// The ways to train in parallel that are worth a row, each with a recipe of its own.
struct TrafficWay {
  std::string name;
  Recipe recipe;
  ParallelSpec spec;
};
std::vector<TrafficWay> traffic_ways();

// What all-reduce by a ring sends of `parameters` gradients in fp16: the usual way.
double fp16_bytes(double parameters, int ranks);

struct TrafficPage {
  std::string command;  // repeats the page when typed into a shell
  std::string model;    // a complete spec
  std::vector<RunResult> measured;
};
std::string render_page(const TrafficPage& page);

}  // namespace tritgrad
