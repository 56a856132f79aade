// The functions of tritgrad.h that open a model, describe it and predict by it.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "engine/data/npy_dataset.h"
#include "engine/files/checkpoint.h"
#include "engine/text.h"
#include "models/footprint.h"
#include "models/training/predict.h"
#include "tools/c/arrays.h"
#include "tools/c/border.h"
#include "tools/c/handles.h"
#include "tools/c/spec_json.h"

namespace tritgrad {

// The heap keeps the bytes where the checkpoint's arrays point to, however few they are.
tg_model* model_of_bytes(std::vector<std::byte> bytes) {
  const std::span<const std::byte> kept(bytes);
  return new tg_model{std::move(bytes), SavedRun(kept, "bytes")};
}

void check_features(const tg_model& model, std::int64_t features) {
  check(!model.saved.is_language_model(),
        "the model reads texts, and rows are none; ask it for text by tg_model_generate()");
  const ModelInput& input = model.loaded.plan.input;
  if (features == input.features) return;
  const std::vector<std::string> names = model.saved.table().feature_names();
  const bool named = std::any_of(names.begin(), names.end(),
                                 [](const std::string& name) { return !name.empty(); });
  std::string inputs;
  if (input.image.size() > 0) {
    inputs = concat(" (images of ", input.image.height, " x ", input.image.width, " x ",
                    input.image.channels, ")");
  } else if (named) {
    inputs = concat(" (", enumerated(names), ")");
  }
  fail("features: ", features, " found, the model has ", input.features, " inputs", inputs,
       "; give a number for each of them in every row");
}

namespace {

nlohmann::ordered_json bytes_per_parameter(const ModelFootprint& footprint) {
  nlohmann::ordered_json json;
  for (const auto& [name, bytes] : named_bytes(footprint.total)) {
    json[name] = footprint.per_parameter(bytes);
  }
  return json;
}

// Writes for each row of logits its class and the probabilities of all, where there is a place.
void tell_classes(const std::vector<float>& logits, std::int64_t outputs, std::int64_t* classes,
                  float* probabilities) {
  const std::int64_t rows = std::ssize(logits) / outputs;
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* y = logits.data() + row * outputs;
    if (classes != nullptr) classes[row] = std::max_element(y, y + outputs) - y;
    if (probabilities != nullptr) softmax_of_row(y, outputs, probabilities + row * outputs);
  }
}

// Infinite outputs are of no class and no number.
void check_finite_outputs(const std::vector<float>& outputs, std::int64_t of_row) {
  const auto broken = std::find_if(outputs.begin(), outputs.end(),
                                   [](float output) { return !std::isfinite(output); });
  check(broken == outputs.end(), "values: the model's outputs of row ",
        (broken - outputs.begin()) / of_row,
        " are not finite; look for a number of that row that is far from all of the training");
}

// Reads rows by what the model knows of its columns; all labels are 0.
Dataset rows_to_score(const tg_model& model, const NpyArray& values) {
  TableSchema schema = model.saved.table();
  schema.class_names = {"0"};
  const std::vector<std::int64_t> zeros(static_cast<std::size_t>(values.extents[0]));
  const ArrayPair pair{values, view_labels(zeros.data(), TG_INT64, values.extents[0]), "values",
                       "labels"};
  Dataset dataset = dataset_of_arrays({&pair, 1}, "values", &schema, true, TaskKind::kClassify);
  dataset.image = model.loaded.plan.input.image;
  return dataset;
}

}  // namespace
}  // namespace tritgrad

using namespace tritgrad;

tg_model* tg_model_open(const char* path) {
  return pointer_of([&] {
    return new tg_model{{}, SavedRun(text_of(path, "path", "the name of a file"))};
  });
}

tg_model* tg_model_from_bytes(const void* bytes, size_t size) {
  return pointer_of([&] {
    check(bytes != nullptr, "bytes: NULL found, those of a checkpoint expected");
    const auto* first = static_cast<const std::byte*>(bytes);
    return model_of_bytes(std::vector<std::byte>(first, first + size));
  });
}

const void* tg_model_bytes(tg_model* model, size_t* size) {
  return pointer_of([&]() -> const void* {
    check(size != nullptr, "size: NULL found, a place for the number of bytes expected");
    const std::span<const std::byte> bytes = of(model, "model").saved.bytes();
    *size = bytes.size();
    return bytes.data();
  });
}

const char* tg_model_describe(tg_model* model) {
  return pointer_of([&]() -> const char* {
    const SavedModel& plan = of(model, "model").loaded.plan;
    const ModelFootprint footprint = forecast_footprint(
        plan_model(plan.model, plan.input, plan.outputs, plan.recipe), plan.recipe);
    nlohmann::ordered_json json{
        {"model", plan.model},
        {"recipe", plan.recipe.name},
        {"task", model->saved.is_language_model() ? "language"
                 : model->loaded.is_regression    ? "regress"
                                                  : "classify"},
        {"inputs", plan.input.features},
        {"classes", model->saved.class_names()},
        {"feature_names", model->saved.table().feature_names()},
        {"steps", model->saved.step()},
        {"parameters", footprint.parameters},
        {"bytes_per_parameter", bytes_per_parameter(footprint)},
        {"checkpoint_bytes", model->saved.bytes().size()},
        {"weights_sha256", weights_sha256(model->loaded.model->parameters())}};
    const ImageShape& image = plan.input.image;
    if (image.size() > 0) json["image"] = {image.height, image.width, image.channels};
    model->description = json_text(json);
    return model->description.c_str();
  });
}

tg_status tg_model_predict(tg_model* model, const void* values, tg_type type, int64_t rows,
                           int64_t features, int64_t* classes, float* probabilities,
                           double* outputs) {
  return status_of([&] {
    const SavedModel& plan = of(model, "model").loaded.plan;
    check_features(*model, features);
    check(!model->loaded.is_regression || (classes == nullptr && probabilities == nullptr),
          "classes, probabilities: the model predicts a number and has no classes; give NULL, and "
          "a place for the numbers as outputs");
    if (rows == 0) return;
    const Dataset dataset =
        rows_to_score(*model, view_values(values, type, rows, features, plan.input.image));
    const std::vector<float> all = predict_logits(model->loaded, dataset, unsplit(dataset).train);
    check_finite_outputs(all, plan.outputs);
    if (!model->loaded.is_regression) {
      tell_classes(all, plan.outputs, classes, probabilities);
      if (outputs != nullptr) std::copy(all.begin(), all.end(), outputs);
    } else if (outputs != nullptr) {
      std::transform(all.begin(), all.end(), outputs,
                     [&](float y) { return model->loaded.target_scale.in_units(y); });
    }
  });
}

void tg_model_close(tg_model* model) { delete model; }
