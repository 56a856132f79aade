#include "tools/saved_run.h"

#include <algorithm>
#include <filesystem>

#include "engine/files/hash.h"

namespace tritgrad {

SavedRun::SavedRun(const std::string& path)
    : path_(path), file_(open_checkpoint(path)), run_(parsed_run()) {}

const std::string& SavedRun::metadata_value(const char* key) const {
  const auto found = file_.metadata().find(key);
  check(found != file_.metadata().end(), "checkpoint '", path_, "': metadata '", key,
        "' is missing; it was not written by 'tritgrad train --save'");
  return found->second;
}

Json SavedRun::parsed_run() const {
  const std::string& version = metadata_value("tritgrad.format");
  check(version == kCheckpointFormat, "checkpoint '", path_, "': format version ", version,
        " is not supported, expected ", kCheckpointFormat, "; use the tritgrad that wrote it");
  try {
    return Json::parse(metadata_value("tritgrad.run"));
  } catch (const Json::exception& error) {
    fail("checkpoint '", path_, "': metadata 'tritgrad.run' is not valid JSON: ", error.what());
  }
}

TrainOptions SavedRun::options() const {
  TrainOptions options;
  options.data = field<std::string>("data");
  options.model = field<std::string>("model");
  options.recipe = field<std::string>("recipe");
  options.overrides = field<std::vector<std::string>>("overrides");
  options.epochs = field<int>("epochs");
  options.batch = field<std::int64_t>("batch");
  options.micro_batches = field<std::int64_t>("micro_batches");
  options.seed = field<std::uint64_t>("seed");
  options.validation = field<double>("validation");
  if (has("augment")) options.augment = field<std::string>("augment");
  options.label_smoothing = has("label_smoothing") ? field<double>("label_smoothing") : 0.0;
  options.pixels = pixels();
  if (has("parallel")) options.parallel = parallel();
  options.label = field<std::string>("label");
  options.header = field<std::string>("header");
  return options;
}

SavedModel SavedRun::model() const {
  return {field<std::string>("model"),
          {field<std::int64_t>("inputs"), image()},
          field<std::int64_t>("outputs"),
          parse_recipe(metadata_value("tritgrad.recipe"), "checkpoint '" + path_ + "'")};
}

ParallelSpec SavedRun::parallel() const {
  const auto json = field<Json>("parallel");
  ParallelSpec spec;
  spec.method = parse_method(field_of<std::string>(json, "method"));
  spec.majority = field_of<bool>(json, "majority");
  spec.warmup = std::nullopt;
  if (!field_of<Json>(json, "warmup").is_null()) spec.warmup = field_of<double>(json, "warmup");
  spec.squeeze = field_of<bool>(json, "rms") ? Compression::kSignRms : Compression::kSign;
  return spec;
}

int SavedRun::ranks() const {
  constexpr int kMostRanks = 1 << 20;
  const int ranks = field_of<int>(field<Json>("parallel"), "ranks");
  check(ranks >= 1 && ranks <= kMostRanks, "checkpoint '", path_, "': metadata field 'ranks' is ",
        ranks, ", expected 1 to ", kMostRanks);
  return ranks;
}

ImageShape SavedRun::image() const {
  if (!has("image")) return {};
  const auto sides = field<std::vector<std::int64_t>>("image");
  check(sides.size() == 3 && sides[0] > 0 && sides[1] > 0 && sides[2] > 0, "checkpoint '", path_,
        "': metadata field 'image' is not three positive numbers");
  return {sides[0], sides[1], sides[2]};
}

PixelScale SavedRun::pixels() const {
  if (!has("pixels")) return PixelScale::kLinear;
  const auto text = field<std::string>("pixels");
  for (const PixelScale scale : {PixelScale::kLinear, PixelScale::kSquareRoot}) {
    if (text == to_text(scale)) return scale;
  }
  fail("checkpoint '", path_, "': metadata field 'pixels' is '", text,
       "', expected linear or sqrt");
}

void SavedRun::check_image(const Dataset& dataset) const {
  const ImageShape saved = image(), now = dataset.image;
  check(saved.size() == 0 || saved == now, "checkpoint '", path_, "': its model read images of ",
        saved.height, " x ", saved.width, " x ", saved.channels, " but those of '", dataset.name,
        "' have ", now.height, " x ", now.width, " x ", now.channels);
}

void SavedRun::check_feature_order(const Dataset& dataset) const {
  if (!has("feature_names")) return;
  const auto saved = field<std::vector<std::string>>("feature_names");
  const std::vector<std::string>& names = dataset.feature_names;
  std::vector<std::string> a = saved, b = names;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  if (saved == names || a != b) return;
  const auto [was, is] = std::mismatch(saved.begin(), saved.end(), names.begin());
  fail("checkpoint '", path_, "': feature ", was - saved.begin() + 1, " was '", *was,
       "' in the training data and is '", *is, "' in '", dataset.name,
       "'; put the columns into the order of the training data");
}

void SavedRun::check_same_data(const Dataset& dataset, const char* remedy) const {
  const auto data = field<std::string>("data");
  check(field<std::string>("data_xxh3") == data_xxh3(dataset), "checkpoint '", path_,
        "': the rows of '", dataset.name, "' are not those that it was trained on, '", data,
        "', or have changed since it was written; ", remedy);
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

Json to_json(const ParallelSpec& spec, int ranks) {
  return {{"method", method_name(spec.method)},
          {"majority", spec.majority},
          {"warmup", spec.warmup ? Json(*spec.warmup) : Json(nullptr)},
          {"rms", spec.squeeze == Compression::kSignRms},
          {"ranks", ranks}};
}

std::string data_xxh3(const Dataset& dataset) {
  std::string names;
  for (const std::string& name : dataset.class_names) names += name + '\n';
  for (const std::string& name : dataset.feature_names) names += name + '\n';
  const std::uint64_t parts[] = {xxh3(dataset.values.bytes()),
                                 xxh3(std::as_bytes(std::span(dataset.labels))),
                                 xxh3(std::as_bytes(std::span(names)))};
  return hex(xxh3(std::as_bytes(std::span(parts))));
}

void add_standardizer_planes(std::vector<float>& means, std::vector<float>& inverse_stds,
                             std::vector<NamedPlane>& planes) {
  const auto n = static_cast<std::int64_t>(means.size());
  planes.push_back({"data/mean", Dtype::kF32, {n}, std::as_writable_bytes(std::span(means))});
  planes.push_back(
      {"data/inverse_std", Dtype::kF32, {n}, std::as_writable_bytes(std::span(inverse_stds))});
}

}  // namespace tritgrad
