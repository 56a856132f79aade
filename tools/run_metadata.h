// What a checkpoint's metadata say of the run that wrote it (FORMATS.md). Whatever does not fit is
// refused with one sentence that begins with `path`, the checkpoint.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/check.h"
#include "engine/checkpoint.h"
#include "engine/dataset.h"
#include "engine/standardizer.h"
#include "optim/parallel/data_parallel.h"

namespace tritgrad {

using Json = nlohmann::json;

inline constexpr const char* kCheckpointFormat = "3";

const std::string& metadata_value(const Metadata& metadata, const std::string& path,
                                  const char* key);

// The field "tritgrad.run". Checkpoints of other programs, or of a later format, fail here.
Json run_json(const Metadata& metadata, const std::string& path);

template <typename T>
T field(const Json& json, const std::string& path, const char* key) {
  try {
    return json.at(key).get<T>();
  } catch (const Json::exception&) {
    fail("checkpoint '", path, "': metadata field '", key, "' is missing or has the wrong type");
  }
}

// How the ranks of the run worked together, and how many they were.
Json to_json(const ParallelSpec& spec, int ranks);
ParallelSpec parallel_from(const Json& run, const std::string& path);
int ranks_of(const Json& run, const std::string& path);

// Nothing where the features were no image, and in checkpoints of before models read images.
ImageShape image_of(const Json& run, const std::string& path);
// Refuses data whose images are not those of the model.
void check_image(const ImageShape& saved, const std::string& path, const Dataset& dataset);

// Linear in checkpoints that are older than the choice.
PixelScale pixels_of(const Json& run, const std::string& path);

// Throws Error when the columns of the data are those of the training data in another order.
void check_feature_order(const Json& run, const std::string& path, const Dataset& dataset);

}  // namespace tritgrad
