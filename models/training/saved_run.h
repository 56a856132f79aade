// A checkpoint of a training run, opened and verified once, and its metadata (FORMATS.md). A file
// that does not fit is refused with one sentence that names it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/loader.h"
#include "engine/data/standardizer.h"
#include "engine/data/table_schema.h"
#include "engine/data/targets.h"
#include "engine/data/vocabulary.h"
#include "engine/files/checkpoint.h"
#include "models/networks/model.h"
#include "models/training/run_result.h"
#include "models/training/train_spec.h"

namespace tritgrad {

struct SavedModel {
  std::string model;
  ModelInput input;
  std::int64_t outputs;
  Recipe recipe;
};

// Running sums over the current epoch.
struct EpochSums {
  double loss = 0.0;   // weighted by rows
  double score = 0.0;  // see ScoreSums
  std::int64_t rows = 0;
  std::int64_t flips = 0;
};

// The point that a run had reached.
struct RunPosition {
  std::int64_t step = 0;
  std::int64_t skipped_updates = 0;
  Loader::Cursor cursor;
  EpochSums sums;
  std::int64_t total_flips = 0;  // of the epochs that are over
  std::vector<EpochPoint> curve;
};

class SavedRun {
 public:
  // Throws Error for files that are damaged, of other programs, or of another format.
  explicit SavedRun(const std::string& path);
  // Reads the bytes of such a file, which must outlive it; `name` stands for the path in errors.
  SavedRun(std::span<const std::byte> bytes, const std::string& name);
  ~SavedRun();

  const std::string& path() const { return path_; }
  // Returns all bytes of the file.
  std::span<const std::byte> bytes() const { return file_.bytes(); }
  // Returns the metadata of the run, as JSON.
  std::string text() const;

  // Returns the spec that it was trained with; Field::absent stands for fields that are younger
  // than the file.
  TrainSpec spec() const;
  SavedModel model() const;
  // Returns the number of ranks of the run that wrote it.
  int ranks() const;
  std::int64_t step() const;
  // Returns whether the run came to the end of its epochs.
  bool is_finished() const;
  // Returns whether its model predicts a number, and has no classes.
  bool is_regression() const;
  // Returns whether its model tells the next token of a text.
  bool is_language_model() const;
  // Returns what its tokens stand for.
  Vocabulary vocabulary() const;
  std::vector<std::string> class_names() const;
  std::string data_hash() const;
  // Returns what the model knows of its columns and classes. The pixels of images are columns of
  // numbers, without names where the images had none.
  TableSchema table() const;
  // Throws Error where its parts contradict each other.
  RunPosition position(std::int64_t steps_per_epoch) const;

  // Throws Error when the data have other features or classes than those that it was trained on.
  void check_inputs(const Dataset& dataset) const;
  // Takes rows of as many numbers as the model's images have pixels, such as those of a table, for
  // images in the order of their pixels, and notes it.
  void adopt_image(Dataset& dataset) const;
  // Throws Error when the data's images are not those of the model.
  void check_image(const Dataset& dataset) const;
  // Throws Error when the labels of the data are numbers and those of the model classes, or the
  // other way about.
  void check_task(const Dataset& dataset) const;
  // Throws Error when the columns of the data are those of the training data in another order.
  void check_feature_order(const Dataset& dataset) const;
  // Throws Error when the data are not what the run was trained on, value by value. `remedy` ends
  // the message.
  void check_same_data(const Dataset& dataset, const char* remedy) const;

  // See load_checkpoint() and load_planes().
  void load(const std::vector<NamedArray>& planes) const { load_checkpoint(file_, planes); }
  void load_part(const std::vector<NamedArray>& planes) const { load_planes(file_, planes); }

 private:
  struct Fields;  // of the run's JSON

  SavedRun(const std::string& path, SafetensorsFile file);

  const std::string& metadata_value(const char* key) const;
  ImageShape image() const;
  std::int64_t inputs() const;
  std::int64_t outputs() const;
  // Returns the sums of the epoch; the flips of those before go to `total_flips`.
  EpochSums sums(std::int64_t* total_flips) const;
  // Returns the points of as many epochs as are over.
  std::vector<EpochPoint> curve(std::int64_t epochs) const;

  std::string path_;
  SafetensorsFile file_;
  std::unique_ptr<const Fields> fields_;
};

// Returns the metadata of a checkpoint. `data_hash`: see data_xxh3(); `ranks` are 0 without --dp.
Metadata run_metadata(const TrainSpec& spec, const Recipe& recipe, const Dataset& dataset,
                      const std::string& data_hash, const RunPosition& position, int ranks);

// Returns whether a new checkpoint may take the place of the file at `path`: there is none, or it
// is empty or another checkpoint.
bool is_replaceable(const std::string& path);

// Returns a hash, 16 digits, of values, labels or targets, names of classes and features, by which
// changed data are recognised.
std::string data_xxh3(const Dataset& dataset);

// Adds the planes of a checkpoint that hold the standardisation of the data.
void add_standardizer_planes(std::vector<float>& means, std::vector<float>& inverse_stds,
                             std::vector<NamedArray>& planes);
// Adds the plane that holds a tokenizer, the bytes of its file.
void add_tokenizer_plane(std::string& tokenizer, std::vector<NamedArray>& planes);
// Adds those that hold the standardisation of the targets of regression.
void add_target_planes(TargetScale& scale, std::vector<NamedArray>& planes);

}  // namespace tritgrad
