// Where every byte of a model goes, as `tritgrad inspect` tells it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "engine/data/table_schema.h"
#include "models/footprint.h"
#include "models/training/parallel_run.h"
#include "models/training/saved_run.h"
#include "tools/inspect/export_forecast.h"
#include "tools/inspect/traffic_forecast.h"

namespace tritgrad {

// How several ranks would train the model.
struct JointForecast {
  ParallelSpec spec;
  int ranks;
  TrafficForecast traffic;

  // The mean over a run with the warm-up that training has unless told otherwise.
  TrafficForecast mean() const { return traffic.with_warmup(*spec.warmup); }
};

// What there is to say of a model.
struct Inspection {
  std::string model;
  Recipe recipe;
  ModelFootprint forecast;
  std::optional<ModelFootprint> live = {};
  std::optional<JointForecast> joint = {};
  std::optional<TableSchema> table = {};  // what a checkpoint knows of a user's table
  std::optional<ExportForecast> exported = {};
};

// Makes a model of the plan with its optimizer, counts their planes and buffers, and calls
// meanwhile() while they exist.
ModelFootprint allocate_and_count(
    const SavedModel& plan, const std::function<void()>& meanwhile = [] {});

// Says what is forecast of a saved model, and what it knows of its table.
Inspection inspect_saved(const SavedRun& run);

// Returns what FORMATS.md describes, of several lines.
std::string to_json(const Inspection& inspection);

}  // namespace tritgrad
