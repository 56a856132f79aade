#include "tools/run_metadata.h"

#include <algorithm>

namespace tritgrad {

const std::string& metadata_value(const Metadata& metadata, const std::string& path,
                                  const char* key) {
  const auto found = metadata.find(key);
  check(found != metadata.end(), "checkpoint '", path, "': metadata '", key,
        "' is missing; it was not written by 'tritgrad train --save'");
  return found->second;
}

Json run_json(const Metadata& metadata, const std::string& path) {
  const std::string& version = metadata_value(metadata, path, "tritgrad.format");
  check(version == kCheckpointFormat, "checkpoint '", path, "': format version ", version,
        " is not supported, expected ", kCheckpointFormat, "; use the tritgrad that wrote it");
  try {
    return Json::parse(metadata_value(metadata, path, "tritgrad.run"));
  } catch (const Json::exception& error) {
    fail("checkpoint '", path, "': metadata 'tritgrad.run' is not valid JSON: ", error.what());
  }
}

Json to_json(const ParallelSpec& spec, int ranks) {
  return {{"method", method_name(spec.method)},
          {"majority", spec.majority},
          {"warmup", spec.warmup ? Json(*spec.warmup) : Json(nullptr)},
          {"rms", spec.squeeze == Compression::kSignRms},
          {"ranks", ranks}};
}

ParallelSpec parallel_from(const Json& run, const std::string& path) {
  const auto json = field<Json>(run, path, "parallel");
  ParallelSpec spec;
  spec.method = parse_method(field<std::string>(json, path, "method"));
  spec.majority = field<bool>(json, path, "majority");
  spec.warmup = std::nullopt;
  if (!field<Json>(json, path, "warmup").is_null())
    spec.warmup = field<double>(json, path, "warmup");
  spec.squeeze = field<bool>(json, path, "rms") ? Compression::kSignRms : Compression::kSign;
  return spec;
}

int ranks_of(const Json& run, const std::string& path) {
  constexpr int kMostRanks = 1 << 20;
  const int ranks = field<int>(field<Json>(run, path, "parallel"), path, "ranks");
  check(ranks >= 1 && ranks <= kMostRanks, "checkpoint '", path, "': metadata field 'ranks' is ",
        ranks, ", expected 1 to ", kMostRanks);
  return ranks;
}

ImageShape image_of(const Json& run, const std::string& path) {
  if (!run.contains("image")) return {};
  const auto sides = field<std::vector<std::int64_t>>(run, path, "image");
  check(sides.size() == 3 && sides[0] > 0 && sides[1] > 0 && sides[2] > 0, "checkpoint '", path,
        "': metadata field 'image' is not three positive numbers");
  return {sides[0], sides[1], sides[2]};
}

void check_image(const ImageShape& saved, const std::string& path, const Dataset& dataset) {
  const ImageShape& image = dataset.image;
  check(saved.size() == 0 || saved == image, "checkpoint '", path, "': its model read images of ",
        saved.height, " x ", saved.width, " x ", saved.channels, " but those of '", dataset.name,
        "' have ", image.height, " x ", image.width, " x ", image.channels);
}

PixelScale pixels_of(const Json& run, const std::string& path) {
  if (!run.contains("pixels")) return PixelScale::kLinear;
  const auto text = field<std::string>(run, path, "pixels");
  for (const PixelScale scale : {PixelScale::kLinear, PixelScale::kSquareRoot}) {
    if (text == to_text(scale)) return scale;
  }
  fail("checkpoint '", path, "': metadata field 'pixels' is '", text, "', expected linear or sqrt");
}

void check_feature_order(const Json& run, const std::string& path, const Dataset& dataset) {
  if (!run.contains("feature_names")) return;
  const auto saved = field<std::vector<std::string>>(run, path, "feature_names");
  const std::vector<std::string>& names = dataset.feature_names;
  std::vector<std::string> a = saved, b = names;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  if (saved == names || a != b) return;
  const auto [was, is] = std::mismatch(saved.begin(), saved.end(), names.begin());
  fail("checkpoint '", path, "': feature ", was - saved.begin() + 1, " was '", *was,
       "' in the training data and is '", *is, "' in '", dataset.name,
       "'; put the columns into the order of the training data");
}

}  // namespace tritgrad
