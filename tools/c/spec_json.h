// Options as a JSON object, whose keys are those of the command line: "--val" is "val",
// "--micro-batches" is "micro_batches". Every function throws Error for unknown keys, with the
// nearest, and for values that the command line would refuse.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "models/export/export_target.h"
#include "models/generation/sampler.h"
#include "models/training/train.h"
#include "tools/compare/run_comparison.h"

namespace tritgrad {

// Returns one line; what is no UTF-8 is replaced.
std::string json_text(const nlohmann::ordered_json& json);

// What there is to say of arrays.
struct ArrayOptions {
  std::string name = "arrays";
  std::vector<std::string> class_names;
  std::vector<std::int64_t> image;  // height, width, channels; empty: no images
  bool borrow = false;
};
ArrayOptions array_options_from_json(const std::string& text);

// Reads the options of data: "data" and how a table is understood.
TrainSpec data_spec_from_json(const std::string& text);

// Reads the options of a run: those of training, "lr", "compute", "save", "save_every", "resume"
// and "stop_after".
TrainOptions run_spec_from_json(const std::string& text);
// Takes over how data were read.
void adopt_data_spec(const TrainSpec& data, TrainSpec& spec);

// Reads the options of a comparison: those of training that are not of a single run, "recipes",
// "baseline", "seeds", "tune", "tune_epochs" and "cache".
struct ComparisonSpec {
  ComparisonOptions options;
  std::string cache;  // folder of finished runs; empty: they are kept nowhere
};
ComparisonSpec comparison_spec_from_json(const std::string& text);

// The options of an export.
struct ExportSpec {
  std::string trits = "base3", onnx_ops = "microsoft";
  bool raw_inputs = false;
  std::string type = "tq2_0";
  TrainSpec data;  // to check it on
  std::string cache;
  std::vector<std::string> given;  // as the command line spells them: "--trits"

  bool is_given(std::string_view option) const {
    return std::find(given.begin(), given.end(), option) != given.end();
  }
  ExportSettings settings() const;
};
ExportSpec export_spec_from_json(const std::string& text);

// "export", and the settings of that.
struct InspectSpec {
  std::string ending;  // empty: no export is asked for
  ExportSpec options;
};
InspectSpec inspect_spec_from_json(const std::string& text);

// The options of a text that is written on.
struct GenerateSpec {
  std::int64_t length = 256;  // tokens to write
  SamplerSpec sampler;
};
GenerateSpec generate_spec_from_json(const std::string& text);

}  // namespace tritgrad
