#include "models/training/saved_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "engine/check.h"
#include "engine/data/token_text.h"
#include "engine/files/hash.h"
#include "engine/text.h"
#include "engine/version.h"
#include "models/networks/llama.h"
#include "models/training/saved_fields-inl.h"

namespace tritgrad {
namespace {

using saved::Json;
using saved::Range;
using saved::read_value;
using saved::shown;
using saved::Unfit;

constexpr const char* kCheckpointFormat = "3";
constexpr const char* kTokenizerPlane = "data/tokenizer";

Json to_json(const EpochPoint& point) {
  return {point.epoch, point.train_loss, point.train_score,
          point.val_score ? Json(*point.val_score) : Json(nullptr)};
}

// A number in the range, or NaN, of which JSON knows nothing: it is written as null.
double number_or_nan(const Json& json, const Range& range) {
  double number = std::numeric_limits<double>::quiet_NaN();
  if (!json.is_null()) read_value(json, range, number);
  return number;
}

// Reads the point of epoch `number`, from 1 on.
EpochPoint point_from(const Json& json, std::int64_t number, const Range& scores) {
  if (!json.is_array() || json.size() != 4) throw Unfit{"a list of points of four numbers"};
  EpochPoint point{0.0, number_or_nan(json[1], {}), number_or_nan(json[2], scores), {}};
  read_value(json[0], {}, point.epoch);
  if (point.epoch != static_cast<double>(number)) throw Unfit{"a point for each epoch in turn"};
  if (!json[3].is_null()) point.val_score = number_or_nan(json[3], scores);
  return point;
}

// Counts of right rows are whole numbers, as they have always been in files.
Json json_of_sum(double score) {
  const bool whole = score == std::floor(score) && score <= 0x1p53;
  return whole ? Json(static_cast<std::int64_t>(score)) : Json(score);
}

// The keys of ParallelSpec are those of an object of their own, which runs without ranks lack.
constexpr std::string_view kParallel = "parallel.";

bool is_parallel(const Field& field) { return std::string_view(field.key).starts_with(kParallel); }

Json json_of(const Field& field, const std::optional<double>& value) {
  const std::optional<double> number = value ? value : parse_number(field.absent);
  return number ? Json(*number) : Json(nullptr);
}
Json json_of(const Field&, const std::optional<PixelScale>& value) {
  return to_text(value.value_or(PixelScale::kLinear));
}
Json json_of(const Field&, TaskKind task) { return to_text(task); }
Json json_of(const Field&, Imbalance imbalance) { return to_text(imbalance); }
Json json_of(const Field&, ParallelMethod method) { return method_name(method); }
Json json_of(const Field&, WireCode squeeze) { return squeeze == WireCode::kRmsSigns; }
template <typename T>
Json json_of(const Field&, const T& value) {
  return value;
}

// A number that may be absent, and names of choices, are read as the command line reads them.
template <typename T>
void read_field(const Json& json, const Field& field, T& value) {
  if constexpr (std::is_same_v<T, WireCode>) {
    bool is_rms = false;
    read_value(json, {}, is_rms);
    value = is_rms ? WireCode::kRmsSigns : WireCode::kMeanSigns;
  } else if constexpr (std::is_same_v<T, std::optional<double>>) {
    double number = 0.0;
    if (!json.is_null()) read_value(json, {field.low, field.high}, number);
    if (field.low < field.high) {
      value = json.is_null() ? std::nullopt : std::optional(number);
    } else {
      parse_field(field, json.is_null() ? field.absent : number_text(number), value);
    }
  } else if constexpr (requires { read_value(json, Range(), value); }) {
    read_value(json, {field.low, field.high}, value);
  } else {
    std::string text;
    read_value(json, {}, text);
    if (text.size() > saved::kLongestShown) throw Unfit{"a shorter word"};
    parse_field(field, text, value);
  }
}

// Says whether a field has the value that it has in a spec that nobody changed.
template <typename T>
bool is_default(const Field& field, const T& value) {
  const TrainSpec spec;
  bool same = false;
  visit(spec, [&](const Field& other, const auto& untouched) {
    if constexpr (std::is_same_v<std::decay_t<decltype(untouched)>, T>) {
      same = same || (std::string_view(other.key) == field.key && untouched == value);
    }
  });
  return same;
}

}  // namespace

struct SavedRun::Fields : saved::Fields {
  using saved::Fields::Fields;
  using saved::Fields::get;

  // Reads a field; of one that the file is too old to have, the value that stands for it.
  template <typename T>
  void get(const Field& field, T& value) const {
    const char* key = field.key + (is_parallel(field) ? kParallel.size() : 0);
    if ((field.traits & kYounger) != 0 && !has(key)) {
      if constexpr (requires { value.value(); }) read_field(json_of(field, T()), field, value);
      return;
    }
    read_with(key, [&](const Json& json) { read_field(json, field, value); });
  }
};

SavedRun::SavedRun(const std::string& path) : SavedRun(path, open_checkpoint(path)) {}

SavedRun::SavedRun(std::span<const std::byte> bytes, const std::string& name)
    : SavedRun(name, parse_checkpoint(bytes, name)) {}

SavedRun::SavedRun(const std::string& path, SafetensorsFile file)
    : path_(path), file_(std::move(file)) {
  const std::string& version = metadata_value("tritgrad.format");
  check(version == kCheckpointFormat, "checkpoint '", path_, "': format version ", shown(version),
        " is not supported, expected ", kCheckpointFormat, "; use the tritgrad that wrote it");
  try {
    fields_.reset(new Fields{path_, Json::parse(metadata_value("tritgrad.run"))});
  } catch (const Json::exception& error) {
    fail("checkpoint '", path_,
         "': metadata 'tritgrad.run' is not valid JSON: ", shown(error.what()));
  }
  // Whatever the file is opened for, it tells no lies of these.
  spec();
  step();
}

SavedRun::~SavedRun() = default;

std::string SavedRun::text() const { return fields_->json().dump(); }

const std::string& SavedRun::metadata_value(const char* key) const {
  const auto found = file_.metadata().find(key);
  check(found != file_.metadata().end(), "checkpoint '", path_, "': metadata '", key,
        "' is missing; it was not written by 'tritgrad train --save'");
  return found->second;
}

TrainSpec SavedRun::spec() const {
  TrainSpec spec;
  const bool is_joint = fields_->has("parallel");
  const Fields parallel(path_, is_joint ? fields_->get<Json>("parallel") : Json());
  visit(spec, [&](const Field& field, auto& value) {
    if ((field.traits & kUnsaved) != 0 || (is_parallel(field) && !is_joint)) return;
    (is_parallel(field) ? parallel : *fields_).get(field, value);
  });
  return spec;
}

SavedModel SavedRun::model() const {
  return {fields_->get<std::string>("model"),
          {inputs(), image()},
          outputs(),
          parse_recipe(metadata_value("tritgrad.recipe"), "checkpoint '" + path_ + "'")};
}

int SavedRun::ranks() const {
  constexpr double kMostRanks = 1 << 20;
  return static_cast<int>(fields_->inner("parallel").count("ranks", 1.0, kMostRanks));
}

std::int64_t SavedRun::step() const { return fields_->count("step"); }

std::int64_t SavedRun::inputs() const {
  constexpr double kMostInputs = 0x1p40;
  return fields_->count("inputs", 1.0, kMostInputs);
}

std::int64_t SavedRun::outputs() const {
  constexpr double kMostOutputs = 0x1p31;
  return fields_->count("outputs", 1.0, kMostOutputs);
}

bool SavedRun::is_language_model() const {
  return context_of(fields_->get<std::string>("model")) > 0;
}

Vocabulary SavedRun::vocabulary() const {
  for (const StoredTensor& tensor : file_.tensors()) {
    if (tensor.name != kTokenizerPlane) continue;
    const auto* bytes = reinterpret_cast<const char*>(tensor.bytes.data());
    return Vocabulary::of_pieces({bytes, tensor.bytes.size()},
                                 concat("checkpoint '", path_, "': its tokenizer"));
  }
  return Vocabulary::of_bytes();
}

bool SavedRun::is_regression() const { return spec().task == TaskKind::kRegress; }

std::vector<std::string> SavedRun::class_names() const {
  return fields_->get<std::vector<std::string>>("class_names");
}

std::string SavedRun::data_hash() const { return fields_->get<std::string>("data_xxh3"); }

// Returns no image where the features were none, and in checkpoints that are older than
// convolutional networks.
ImageShape SavedRun::image() const {
  if (!fields_->has("image")) return {};
  constexpr double kLongestSide = 1 << 20;  // three of them make no number above 2^60
  const auto sides = fields_->get<std::vector<std::int64_t>>("image", {1.0, kLongestSide});
  check(sides.size() == 3, "checkpoint '", path_, "': metadata field 'image' has ", sides.size(),
        " numbers, 3 expected; the file is damaged");
  return {sides[0], sides[1], sides[2]};
}

EpochSums SavedRun::sums(std::int64_t* total_flips) const {
  constexpr double kMost = saved::kMostCount;
  EpochSums sums;
  fields_->read_with("sums", [&](const Json& json) {
    if (!json.is_array() || json.size() != 5) throw Unfit{"a list of five numbers"};
    read_value(json[0], {}, sums.loss);
    // The scores of regression and of texts are sums of numbers, those of classes counts.
    const bool is_count = !is_regression() && !is_language_model();
    const double most = is_count ? kMost : std::numeric_limits<double>::max();
    read_value(json[1], {0.0, most}, sums.score);
    read_value(json[2], {0.0, kMost}, sums.rows);
    read_value(json[3], {0.0, kMost}, sums.flips);
    read_value(json[4], {0.0, kMost}, *total_flips);
  });
  return sums;
}

std::vector<EpochPoint> SavedRun::curve(std::int64_t epochs) const {
  const bool is_share = !is_regression() && !is_language_model();
  const Range scores{0.0, is_share ? 1.0 : std::numeric_limits<double>::max()};
  std::vector<EpochPoint> curve;
  fields_->read_with("curve", [&](const Json& json) {
    if (!json.is_array() || std::ssize(json) != epochs) {
      throw Unfit{concat("a list of ", counted(epochs, "epoch"))};
    }
    for (const Json& point : json) {
      curve.push_back(point_from(point, std::ssize(curve) + 1, scores));
    }
  });
  return curve;
}

bool SavedRun::is_finished() const {
  std::int64_t done = 0;
  fields_->read_with("curve", [&](const Json& json) {
    if (!json.is_array()) throw Unfit{"a list of points of four numbers"};
    done = std::ssize(json);
  });
  return !curve(done).empty() && done >= spec().epochs;
}

RunPosition SavedRun::position(std::int64_t steps_per_epoch) const {
  const auto cursor = fields_->get<std::vector<std::int64_t>>("cursor", {0.0, saved::kMostCount});
  check(cursor.size() == 2, "checkpoint '", path_, "': metadata field 'cursor' has ", cursor.size(),
        " numbers, 2 expected; the file is damaged");
  RunPosition position;
  position.step = step();
  // Absent from checkpoints that are older than the count.
  if (fields_->has("skipped_updates")) {
    position.skipped_updates =
        fields_->count("skipped_updates", 0.0, static_cast<double>(position.step));
  }
  position.cursor = {cursor[0], cursor[1]};
  check(position.cursor.epoch == position.step / steps_per_epoch &&
            position.cursor.position == position.step % steps_per_epoch,
        "checkpoint '", path_, "': step ", position.step, " is not batch ", cursor[1], " of epoch ",
        cursor[0], ", where its data stand, as an epoch has ", steps_per_epoch,
        "; the file is damaged");
  position.sums = sums(&position.total_flips);
  position.curve = curve(position.cursor.epoch);
  return position;
}

TableSchema SavedRun::table() const {
  TableSchema schema;
  if (fields_->has("table")) {
    schema = schema_from_json(fields_->get<Json>("table").dump(),
                              concat("checkpoint '", path_, "': metadata field 'table'"));
  } else if (fields_->has("feature_names")) {
    // The file is of a built-in set, or older than schemas.
    for (const std::string& name : fields_->get<std::vector<std::string>>("feature_names")) {
      TableFeature feature;
      feature.name = name;
      feature.place = std::ssize(schema.columns);
      constexpr std::string_view kNameless = "column ";  // and its number
      schema.has_names = schema.has_names || !name.starts_with(kNameless) ||
                         !parse_number(name.substr(kNameless.size()));
      schema.columns.push_back(std::move(feature));
    }
  }
  const std::int64_t inputs = this->inputs();
  if (schema.columns.empty()) schema.columns.resize(static_cast<std::size_t>(inputs));
  check(schema.features() == inputs, "checkpoint '", path_, "': its model has ",
        counted(inputs, "input"), ", but its columns become ",
        counted(schema.features(), "feature"), "; the file is damaged");
  schema.class_names = class_names();
  return schema;
}

void SavedRun::check_inputs(const Dataset& dataset) const {
  check(inputs() == dataset.features && outputs() == dataset.outputs(), "checkpoint '", path_,
        "': it was trained on '", shown(fields_->get<std::string>("data")),
        "', which has other features or classes than '", dataset.name, "'");
}

void SavedRun::check_task(const Dataset& dataset) const {
  const bool text = is_language_model();
  check(text == dataset.is_text(), "checkpoint '", path_, "': its model ",
        text ? "reads text" : "reads rows of features", ", but '", dataset.name, "' is ",
        text ? "none" : "a text", "; give data of the kind that it was trained on");
  check(!text || vocabulary().hash() == dataset.text->tokenizer().hash(), "checkpoint '", path_,
        "': its tokens are those of another tokenizer than those of '", dataset.name,
        "'; cut the text by the tokenizer of the checkpoint");
  const bool regression = is_regression();
  check(regression == dataset.is_regression(), "checkpoint '", path_, "': its model predicts ",
        regression ? "a number" : "classes", ", but the labels of '", dataset.name, "' are ",
        regression ? "classes" : "numbers", "; give data of the kind that it was trained on");
}

void SavedRun::adopt_image(Dataset& dataset) const {
  const ImageShape saved = image();
  if (saved.size() == 0 || dataset.is_image() || dataset.features != saved.size()) return;
  dataset.image = saved;
  dataset.remarks.notes.push_back(concat("the ", dataset.features, " features of '", dataset.name,
                                         "' are taken for images of ", saved.height, " x ",
                                         saved.width, " x ", saved.channels, " pixels"));
}

void SavedRun::check_image(const Dataset& dataset) const {
  const ImageShape saved = image(), now = dataset.image;
  check(saved.size() == 0 || saved == now, "checkpoint '", path_, "': its model read images of ",
        saved.height, " x ", saved.width, " x ", saved.channels, " but those of '", dataset.name,
        "' have ", now.height, " x ", now.width, " x ", now.channels);
}

void SavedRun::check_feature_order(const Dataset& dataset) const {
  if (!fields_->has("feature_names")) return;
  const auto saved = fields_->get<std::vector<std::string>>("feature_names");
  const std::vector<std::string>& names = dataset.feature_names;
  std::vector<std::string> a = saved, b = names;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  if (saved == names || a != b) return;
  const auto [was, is] = std::mismatch(saved.begin(), saved.end(), names.begin());
  fail("checkpoint '", path_, "': feature ", was - saved.begin() + 1, " was '", shown(*was),
       "' in the training data and is '", *is, "' in '", dataset.name,
       "'; put the columns into the order of the training data");
}

void SavedRun::check_same_data(const Dataset& dataset, const char* remedy) const {
  const std::string data = shown(fields_->get<std::string>("data"));
  check(fields_->get<std::string>("data_xxh3") == data_xxh3(dataset), "checkpoint '", path_,
        "': the rows of '", dataset.name, "' are not those that it was trained on, '", data,
        "', or have changed since it was written; ", remedy);
}

Metadata run_metadata(const TrainSpec& spec, const Recipe& recipe, const Dataset& dataset,
                      const std::string& data_hash, const RunPosition& position, int ranks) {
  Json run;
  visit(spec, [&]<typename T>(const Field& field, const T& value) {
    if ((field.traits & kUnsaved) != 0) return;
    if ((field.traits & kSparse) != 0 && is_default(field, value)) return;
    if (!is_parallel(field)) {
      run[field.key] = json_of(field, value);
    } else if (ranks > 0) {
      run["parallel"][std::string(std::string_view(field.key).substr(kParallel.size()))] =
          json_of(field, value);
    }
  });
  if (ranks > 0) run["parallel"]["ranks"] = ranks;
  run["inputs"] = dataset.features;
  if (dataset.is_regression()) run["task"] = to_text(TaskKind::kRegress);
  run["outputs"] = dataset.outputs();
  if (const ImageShape& image = dataset.image; dataset.is_image()) {
    run["image"] = {image.height, image.width, image.channels};
  }
  run["class_names"] = dataset.class_names;
  run["feature_names"] = dataset.feature_names;
  if (dataset.schema) run["table"] = Json::parse(to_json(*dataset.schema));
  run["data_xxh3"] = data_hash;
  run["step"] = position.step;
  run["cursor"] = {position.cursor.epoch, position.cursor.position};
  run["sums"] = {position.sums.loss, json_of_sum(position.sums.score), position.sums.rows,
                 position.sums.flips, position.total_flips};
  run["skipped_updates"] = position.skipped_updates;
  run["curve"] = Json::array();
  for (const EpochPoint& point : position.curve) run["curve"].push_back(to_json(point));
  return {{"tritgrad.format", kCheckpointFormat},
          {"tritgrad.version", version()},
          {"tritgrad.run", run.dump()},
          {"tritgrad.recipe", recipe.toml}};
}

bool is_replaceable(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return true;
  if (std::filesystem::file_size(path, error) == 0) return true;
  try {
    return open_checkpoint(path).metadata().contains("tritgrad.run");
  } catch (const Error&) {
    return false;
  }
}

std::string data_xxh3(const Dataset& dataset) {
  if (dataset.is_text()) {
    const std::uint64_t parts[] = {dataset.text->hash(), dataset.text->tokenizer().hash()};
    return hex(xxh3(std::as_bytes(std::span(parts))));
  }
  std::string names;
  for (const std::string& name : dataset.class_names) names += name + '\n';
  for (const std::string& name : dataset.feature_names) names += name + '\n';
  const auto labels = dataset.is_regression() ? std::as_bytes(std::span(dataset.targets))
                                              : std::as_bytes(std::span(dataset.labels));
  const std::uint64_t parts[] = {xxh3(dataset.values.bytes()), xxh3(labels),
                                 xxh3(std::as_bytes(std::span(names)))};
  return hex(xxh3(std::as_bytes(std::span(parts))));
}

void add_standardizer_planes(std::vector<float>& means, std::vector<float>& inverse_stds,
                             std::vector<NamedArray>& planes) {
  const auto n = static_cast<std::int64_t>(means.size());
  planes.push_back({"data/mean", Dtype::kF32, {n}, std::as_writable_bytes(std::span(means))});
  planes.push_back(
      {"data/inverse_std", Dtype::kF32, {n}, std::as_writable_bytes(std::span(inverse_stds))});
}

void add_tokenizer_plane(std::string& tokenizer, std::vector<NamedArray>& planes) {
  planes.push_back({kTokenizerPlane,
                    Dtype::kU8,
                    {std::ssize(tokenizer)},
                    std::as_writable_bytes(std::span(tokenizer.data(), tokenizer.size()))});
}

void add_target_planes(TargetScale& scale, std::vector<NamedArray>& planes) {
  const auto bytes_of = [](double& number) {
    return std::as_writable_bytes(std::span(&number, 1));
  };
  planes.push_back({"data/target_mean", Dtype::kF64, {1}, bytes_of(scale.mean)});
  planes.push_back({"data/target_deviation", Dtype::kF64, {1}, bytes_of(scale.deviation)});
}

}  // namespace tritgrad
