// The bytes of an export of a model, trained or not trained yet.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "models/export/export_target.h"

namespace tritgrad {

struct ExportForecast {
  const ExportTarget* target;
  std::string trits;  // --trits
  std::int64_t weights;
  ExportBytes bytes;

  double bits_per_weight() const {
    return 8.0 * static_cast<double>(bytes.weights) / static_cast<double>(weights);
  }
};

// Makes a model of the plan, which is allocated, and returns what its export will take. `ending` is
// that of --export. Throws Error for an unknown ending, and for what the target cannot express.
ExportForecast forecast_export(const std::string& ending, const std::string& trits,
                               const SavedModel& plan, const Dataset& dataset,
                               const TrainSpec& spec);

// Returns what the export of a trained model takes, to the byte for its tables. Throws Error as
// forecast_export() does.
ExportForecast measure_export(const ExportTarget& target, const ExportSettings& settings,
                              const InferenceNetwork& network);

std::string to_text(const ExportForecast& forecast);
nlohmann::ordered_json to_json(const ExportForecast& forecast);

}  // namespace tritgrad
