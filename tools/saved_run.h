// A checkpoint of a training run, opened and verified once, and what its metadata say of the run
// (FORMATS.md). Whatever does not fit is refused with one sentence that names the file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/check.h"
#include "engine/data/dataset.h"
#include "engine/data/standardizer.h"
#include "engine/files/checkpoint.h"
#include "models/networks/model.h"
#include "optim/parallel/data_parallel.h"
#include "tools/train.h"

namespace tritgrad {

using Json = nlohmann::json;

inline constexpr const char* kCheckpointFormat = "3";

struct SavedModel {
  std::string model;
  ModelInput input;
  std::int64_t outputs;
  Recipe recipe;
};

class SavedRun {
 public:
  // Throws Error for files that are damaged, of other programs, or of another format.
  explicit SavedRun(const std::string& path);

  const std::string& path() const { return path_; }
  const Json& json() const { return run_; }
  bool has(const char* key) const { return run_.contains(key); }
  template <typename T>
  T field(const char* key) const {
    return field_of<T>(run_, key);
  }

  // The options that it was trained with; those that are younger than the file have the values that
  // stand for it.
  TrainOptions options() const;
  SavedModel model() const;
  // Ranks of the run that wrote it.
  int ranks() const;
  // Nothing where the features were no image, and in checkpoints of before models read images.
  ImageShape image() const;
  // Linear in checkpoints that are older than the choice.
  PixelScale pixels() const;

  // Throws Error when the data's images are not those of the model.
  void check_image(const Dataset& dataset) const;
  // Throws Error when the columns of the data are those of the training data in another order.
  void check_feature_order(const Dataset& dataset) const;
  // Throws Error when the data are not what the run was trained on, value by value. `remedy` ends
  // the message.
  void check_same_data(const Dataset& dataset, const char* remedy) const;

  // See load_checkpoint() and load_planes().
  void load(const std::vector<NamedPlane>& planes) const { load_checkpoint(file_, planes); }
  void load_part(const std::vector<NamedPlane>& planes) const { load_planes(file_, planes); }

 private:
  template <typename T>
  T field_of(const Json& json, const char* key) const {
    try {
      return json.at(key).get<T>();
    } catch (const Json::exception&) {
      fail("checkpoint '", path_, "': metadata field '", key, "' is missing or has the wrong type");
    }
  }
  const std::string& metadata_value(const char* key) const;
  Json parsed_run() const;
  ParallelSpec parallel() const;

  std::string path_;
  SafetensorsFile file_;
  Json run_;
};

// Whether a new checkpoint may take the place of what `path` names: nothing, an empty file or
// another checkpoint.
bool is_replaceable(const std::string& path);

// How the ranks of a run work together, and how many they are, for its checkpoint.
Json to_json(const ParallelSpec& spec, int ranks);

// Tells whether data are still the same: values, labels, names of classes and features. 16 digits.
std::string data_xxh3(const Dataset& dataset);

// The planes of a checkpoint that hold the standardisation of the data.
void add_standardizer_planes(std::vector<float>& means, std::vector<float>& inverse_stds,
                             std::vector<NamedPlane>& planes);

}  // namespace tritgrad
