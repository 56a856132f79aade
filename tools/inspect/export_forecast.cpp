#include "tools/inspect/export_forecast.h"

#include <fmt/format.h>

#include "tools/report/number_text.h"

namespace tritgrad {

ExportForecast forecast_export(const std::string& ending, const std::string& trits,
                               const SavedModel& plan, const Dataset& dataset,
                               const TrainSpec& spec) {
  return measure_export(export_target_with(ending, "--export"), {kTritPackings.parse(trits)},
                        describe_untrained(plan, dataset, spec));
}

ExportForecast measure_export(const ExportTarget& target, const ExportSettings& settings,
                              const InferenceNetwork& network) {
  check_takes(target, false, "--export");
  target.network.check(network, {"model", {}});
  return {&target, std::string(kTritPackings.name(settings.trits)), network.weights(),
          target.network.bytes(network, settings)};
}

std::string to_text(const ExportForecast& forecast) {
  const ExportBytes& bytes = forecast.bytes;
  std::string text = fmt::format(
      "export as {} ({}{}):\n"
      "  tables         {} bytes: weights {}, scales {}, norms and inputs {}\n"
      "  bits a weight  {:.3f} ({} weights)\n",
      forecast.target->ending, forecast.target->description,
      reads_option(*forecast.target, "--trits") ? ", --trits " + forecast.trits : "",
      bytes.tables(), bytes.weights, bytes.scales, bytes.others, forecast.bits_per_weight(),
      forecast.weights);
  if (bytes.workspace > 0) {
    text += fmt::format("  workspace      {}\n", human_bytes(static_cast<double>(bytes.workspace)));
  }
  if (bytes.code > 0) {
    text += fmt::format(
        "  flash          about {}: tables, and {} bytes of code as measured on a Cortex-M4 "
        "(gcc 12 to 14, -Os)\n",
        human_bytes(static_cast<double>(bytes.tables() + bytes.code)), bytes.code);
  }
  return text;
}

nlohmann::ordered_json to_json(const ExportForecast& forecast) {
  const ExportBytes& bytes = forecast.bytes;
  nlohmann::ordered_json json{{"ending", forecast.target->ending}};
  if (reads_option(*forecast.target, "--trits")) json["trits"] = forecast.trits;
  json.update({{"table_bytes", bytes.tables()},
               {"weight_bytes", bytes.weights},
               {"scale_bytes", bytes.scales},
               {"workspace_bytes", bytes.workspace},
               {"code_bytes_estimate", bytes.code},
               {"weights", forecast.weights},
               {"bits_per_weight", forecast.bits_per_weight()}});
  return json;
}

}  // namespace tritgrad
