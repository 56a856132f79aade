// The functions of tritgrad.h that tell the bytes of a model and write it for other programs.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>

#include "tools/c/arrays.h"
#include "tools/c/border.h"
#include "tools/c/checked_rows.h"
#include "tools/c/handles.h"
#include "tools/c/spec_json.h"
#include "tools/cli/checkpoint_data.h"
#include "tools/export/model_export.h"
#include "tools/inspect/inspection.h"

namespace tritgrad {
namespace {

constexpr const char* kSettings[] = {"--trits", "--onnx-ops", "--raw-inputs", "--type"};

void check_given_options(const ExportSpec& spec, const ExportTarget& target) {
  for (const char* option : kSettings) {
    if (spec.is_given(option)) check_option_of(target, option);
  }
}

// Options of data that are read mean nothing to rows that are there.
void check_no_data_options(const ExportSpec& spec) {
  for (const std::string& option : spec.given) {
    const bool is_setting =
        std::find(std::begin(kSettings), std::end(kSettings), option) != std::end(kSettings);
    check(is_setting, "options: '", option.substr(2),
          "' is of data that are read, but the model has rows to be checked on; name \"data\", or "
          "leave it out");
  }
}

// Opens the data of a checkpoint, or those that are named.
Dataset open_rows(const SavedRun& saved, const ExportSpec& spec, const std::string& to) {
  const Given given = [&](const char* option) { return spec.is_given(option); };
  CommonOptions options;
  static_cast<TrainSpec&>(options.train) = spec.data;
  options.terminal.cache = spec.cache;
  const TableSchema schema = adopt_scored_data(given, saved, options);
  try {
    check_no_input("--to", to, input_files(options));
    return open_scored_data(given, saved, options, schema);
  } catch (const Error& error) {
    if (given("--data")) throw;
    fail_again(error, "", "; or give rows by tg_model_check_rows()");
  }
}

FinishedExport export_of(tg_model& model, const ExportSpec& spec, const ExportRequest& request) {
  const SavedRun& saved = model.saved;
  const std::string trained_on = std::filesystem::path(saved.spec().data).stem().string();
  if (model.rows && !spec.is_given("--data")) {
    check_no_data_options(spec);
    return export_model(saved, *model.rows, trained_on, request, model.rows_have_labels);
  }
  Dataset dataset = open_rows(saved, spec, request.to);
  return export_model(saved, dataset, spec.is_given("--data") ? trained_on : dataset.name, request,
                      true);
}

}  // namespace
}  // namespace tritgrad

using namespace tritgrad;

const char* tg_model_inspect(tg_model* model, const char* options) {
  return pointer_of([&]() -> const char* {
    const SavedRun& saved = of(model, "model").saved;
    const InspectSpec spec = inspect_spec_from_json(options == nullptr ? "{}" : options);
    Inspection inspection = inspect_saved(saved);
    inspection.live = allocate_and_count(saved.model());
    if (!spec.ending.empty()) {
      const ExportTarget& target = export_target_with(spec.ending, "export");
      check_given_options(spec.options, target);
      check_takes(target, false, "export");
      inspection.exported =
          measure_export(target, spec.options.settings(), describe_network(saved, model->loaded));
    }
    model->inspection = to_json(inspection);
    return model->inspection.c_str();
  });
}

tg_status tg_model_check_rows(tg_model* model, const void* values, tg_type type, int64_t rows,
                              int64_t features, const int64_t* classes, const double* targets) {
  return status_of([&] {
    const ImageShape& image = of(model, "model").loaded.plan.input.image;
    check_features(*model, features);
    const KnownAnswers answers{classes, targets};
    model->rows =
        rows_given(model->saved, view_values(values, type, rows, features, image), answers);
    model->rows_have_labels = answers.are_given();
  });
}

const char* tg_model_export(tg_model* model, const char* path, const char* options) {
  return pointer_of([&]() -> const char* {
    of(model, "model");
    const std::string to = text_of(path, "path", "the name of a file");
    const ExportTarget& target = export_target_of(to);
    const ExportSpec spec = export_spec_from_json(options == nullptr ? "{}" : options);
    check_given_options(spec, target);
    const ExportRequest request{to, &target, spec.settings()};
    check_no_input("--to", to, {{"the checkpoint", model->saved.path()}});
    check_replaceable_export(to);
    check_output("--to", to, nullptr);
    const FinishedExport finished = export_of(*model, spec, request);
    OutputFile("--to", to, nullptr).write_bytes(finished.bytes);
    model->report = to_json(finished.report);
    return model->report.c_str();
  });
}
