// The functions of tritgrad.h on data.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/npy_dataset.h"
#include "engine/text.h"
#include "tools/c/arrays.h"
#include "tools/c/border.h"
#include "tools/c/handles.h"
#include "tools/c/spec_json.h"
#include "tools/cli/common_options.h"

namespace tritgrad {
namespace {

ImageShape image_of(const ArrayOptions& options, std::int64_t features) {
  const std::vector<std::int64_t>& sides = options.image;
  if (sides.empty()) return {};
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  const bool fits = sides.size() == 3 &&
                    std::all_of(sides.begin(), sides.end(),
                                [](std::int64_t side) { return side > 0 && side <= kMost; }) &&
                    sides[0] * sides[1] * sides[2] == features;
  check(fits, "image: ", sides.size(), " numbers found, [height, width, channels] of ", features,
        " numbers a row expected");
  return {sides[0], sides[1], sides[2]};
}

// Calls classes by names: a label is the number of one.
void name_classes(Dataset& dataset, const std::vector<std::string>& names) {
  check(std::ssize(names) == dataset.classes(), "class_names: ", names.size(),
        " names found, but the labels are of ", dataset.classes(), " classes");
  std::vector<std::string> named;
  for (const std::string& number : dataset.class_names) {
    const std::optional<double> at = parse_number(number);
    check(at && *at >= 0.0 && *at < static_cast<double>(names.size()), "labels: ", number,
          " found, numbers of the ", names.size(), " class names expected, from 0 on");
    named.push_back(names[static_cast<std::size_t>(*at)]);
  }
  dataset.class_names = std::move(named);
}

std::unique_ptr<tg_data> data_of(const ArrayPair& pair, const ImageShape& image,
                                 const ArrayOptions& asked, TaskKind task) {
  auto data = std::make_unique<tg_data>();
  data->spec.data = asked.name;
  data->is_of_arrays = true;
  data->dataset = dataset_of_arrays({&pair, 1}, asked.name, nullptr, asked.borrow, task);
  if (image.size() > 0) data->dataset.image = image;
  return data;
}

nlohmann::ordered_json remarks_of(const Dataset& dataset) {
  auto remarks = nlohmann::ordered_json::array();
  for (const auto* sentences : {&dataset.remarks.warnings, &dataset.remarks.notes}) {
    for (const std::string& sentence : *sentences) remarks.push_back(sentence);
  }
  return remarks;
}

}  // namespace
}  // namespace tritgrad

using namespace tritgrad;

tg_data* tg_data_from_arrays(const void* values, tg_type type, int64_t rows, int64_t features,
                             const void* labels, tg_type label_type, const char* options) {
  return pointer_of([&] {
    const ArrayOptions asked = array_options_from_json(options == nullptr ? "{}" : options);
    const ImageShape image = image_of(asked, features);
    const ArrayPair pair{view_values(values, type, rows, features, image),
                         view_labels(labels, label_type, rows), "values", "labels"};
    std::unique_ptr<tg_data> data = data_of(pair, image, asked, TaskKind::kClassify);
    if (!asked.class_names.empty()) name_classes(data->dataset, asked.class_names);
    return data.release();
  });
}

tg_data* tg_data_from_targets(const void* values, tg_type type, int64_t rows, int64_t features,
                              const double* targets, const char* options) {
  return pointer_of([&] {
    const ArrayOptions asked = array_options_from_json(options == nullptr ? "{}" : options);
    check(asked.class_names.empty(),
          "class_names: names found, but targets are of no classes; leave them out");
    const ImageShape image = image_of(asked, features);
    const ArrayPair pair{view_values(values, type, rows, features, image),
                         view_targets(targets, rows), "values", "targets"};
    return data_of(pair, image, asked, TaskKind::kRegress).release();
  });
}

tg_data* tg_data_open(const char* spec) {
  return pointer_of([&] {
    text_of(spec, "spec", "JSON such as {\"data\": \"iris\"}");
    auto data = std::make_unique<tg_data>();
    CommonOptions options;
    static_cast<TrainSpec&>(options.train) = data_spec_from_json(spec);
    data->dataset = open_data(options);
    data->spec = options.train;
    return data.release();
  });
}

const char* tg_data_describe(tg_data* data) {
  return pointer_of([&]() -> const char* {
    const Dataset& dataset = of(data, "data").dataset;
    const nlohmann::ordered_json json{{"name", dataset.name},
                                      {"task", dataset.is_text()         ? "language"
                                               : dataset.is_regression() ? "regress"
                                                                         : "classify"},
                                      {"rows", dataset.rows},
                                      {"features", dataset.features},
                                      {"classes", dataset.class_names},
                                      {"feature_names", dataset.feature_names},
                                      {"borrowed", dataset.values.is_borrowed()},
                                      {"remarks", remarks_of(dataset)}};
    data->description = json_text(json);
    return data->description.c_str();
  });
}

void tg_data_close(tg_data* data) { delete data; }
