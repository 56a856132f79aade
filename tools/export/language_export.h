// A language model as the bytes of a file for other programs.
#pragma once

#include "tools/export/model_export.h"

namespace tritgrad {

// Does what export_model() does for a checkpoint of a language model, whose description is compared
// with the model on some windows of those that scored_rows() names.
FinishedExport export_language_model(const SavedRun& run, Dataset& dataset,
                                     const std::string& trained_on, const ExportRequest& request);

}  // namespace tritgrad
