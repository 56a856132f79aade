// What data-parallel training sends: forecasts for all methods, and a page that says where they
// lead.
#pragma once

#include <string>
#include <vector>

#include "models/networks/model.h"
#include "models/training/run_result.h"
#include "optim/parallel/forecast.h"
#include "tools/report/page.h"

namespace tritgrad {

// Bytes that a rank sends for a step of `model`, a complete spec, trained by `recipe`.
TrafficForecast forecast_traffic(const std::string& model, const Recipe& recipe,
                                 const ParallelSpec& spec, int ranks, int parts);

// Of a complete spec; the same for all recipes.
double parameters_of(const std::string& model);

// The ways to train in parallel that are worth a row, each with a recipe of its own.
struct TrafficWay {
  std::string name;
  Recipe recipe;
  ParallelSpec spec;
  double warmup = 0.0;  // share of the steps; 0: steps after it
};
std::vector<TrafficWay> traffic_ways();

// The mean of its steps. Throws Error unless the way can have so many parts.
TrafficForecast forecast_traffic(const TrafficWay& way, const std::string& model, int ranks,
                                 int parts);
// Whether it can: see votes_fit().
bool can_have(const TrafficWay& way, const std::string& model, int parts);

// What all-reduce by a ring sends of `parameters` gradients in fp16: the usual way.
double fp16_bytes(double parameters, int ranks);

struct TrafficReport {
  std::string command;  // repeats the page when typed into a shell
  std::string model;    // a complete spec
  int ranks, parts;     // that were asked about
  std::vector<RunResult> measured;
};
Page make_page(const TrafficReport& report);

}  // namespace tritgrad
