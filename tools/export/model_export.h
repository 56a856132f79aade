// A saved model as the bytes of a file for other programs, compared with the model before anything
// is written.
#pragma once

#include <optional>
#include <string>

#include "engine/data/dataset.h"
#include "models/export/export_target.h"
#include "models/export/language_check.h"
#include "models/export/self_check.h"
#include "models/training/saved_run.h"

namespace tritgrad {

// The file that is asked for.
struct ExportRequest {
  std::string to;
  const ExportTarget* target;  // that `to` ends in
  ExportSettings settings;
};

// Reads the settings as the command line names them. Throws Error for unknown names.
ExportSettings parse_export_settings(const std::string& trits, const std::string& onnx_ops,
                                     bool raw_inputs, const std::string& type = "tq2_0");

// What there is to say of an export.
struct ExportReport {
  std::string checkpoint, model, recipe, data;
  ExportRequest request;
  // Whether the description has the model's logits bit by bit, and what reads the file too.
  bool described_exactly, is_exact;
  bool finished, has_dropout;
  std::int64_t steps, weights, file_bytes;
  ExportBytes bytes;
  SelfCheck check;  // of networks that read rows of features
  std::optional<LanguageCheck> language_check = {};
  double scale_change = 0.0;  // largest_scale_change() of a language model in a type of trits

  double bits_per_weight() const {
    return 8.0 * static_cast<double>(bytes.weights) / static_cast<double>(weights);
  }
};
// Returns one line of JSON.
std::string to_json(const ExportReport& report);

struct FinishedExport {
  ExportReport report;
  std::string bytes;  // of the file, which nobody has written yet
};

// Throws Error for what no export wrote, such as a header of somebody's own: it is not replaced.
void check_replaceable_export(const std::string& path);

// Makes the file, and compares its description with the model on the rows of the data that
// scored_rows() names. `trained_on` is what the file calls the data of the run. Without
// labels the data are compared all the same, and no score is told. Of labels see load_model().
// Throws Error for what the target cannot express, and where the comparison fails.
FinishedExport export_model(const SavedRun& run, Dataset& dataset, const std::string& trained_on,
                            const ExportRequest& request, bool has_labels);

}  // namespace tritgrad
