// Training one model on one split: the job behind `tritgrad train`, `compare` and the tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/split.h"
#include "engine/data/standardizer.h"
#include "models/recipes/recipe.h"
#include "models/training/observer.h"
#include "models/training/run_result.h"
#include "optim/parallel/data_parallel.h"

namespace tritgrad {

// What decides the result of a run belongs into run_key() too (tools/compare/run_cache.h).
struct TrainOptions {
  std::string data = "wdbc";
  std::string label;            // label column of a CSV file; empty: the last
  std::string header = "auto";  // of a CSV file
  std::string model = "mlp:64,64";
  std::string recipe = "votes";
  std::vector<std::string> overrides;  // key=value, on the recipe
  int epochs = 0;                      // 0: by the size of the data, see with_defaults()
  std::int64_t batch = 0;              // 0: by the size of the data
  std::int64_t micro_batches = 1;      // parts of a batch whose gradients are added up
  std::uint64_t seed = 1;
  int folds = 0;            // 0: the fixed test split
  double validation = 0.0;  // share of the training rows
  std::string augment;      // of training images, see parse_augmentation()
  // Of the targets, see softmax_cross_entropy(). Absent: by the data, see with_defaults().
  std::optional<double> label_smoothing;
  // What is standardised of a pixel. Absent: by the data, see with_defaults().
  std::optional<PixelScale> pixels;
  PixelScale pixel_scale() const { return pixels.value_or(PixelScale::kLinear); }

  std::string save;             // checkpoint, written after every epoch; empty: none
  std::int64_t save_every = 0;  // also every so many steps; 0: no
  std::string resume;           // checkpoint to continue from; empty: start anew
  std::string log;              // file for one JSON object per epoch; empty: none
  std::int64_t stop_after = 0;  // stop (and save) after so many steps in all; 0: never
  bool quiet = false;           // no progress and no notes; warnings are no less true
  std::string cache;  // as --cache names it, for the command that goes on; empty: not given

  ParallelSpec parallel;
  Communicator* ranks = nullptr;  // of the job; all of them train with the same options
  Observer* observer = nullptr;   // null: nobody watches
};

// The options with what was left open filled in: 60 epochs of batches of 32 below 10,000 rows; 10
// epochs of batches of 128 from there on, with the labels of images smoothed by 0.1; square roots
// of pixels where images are grey and have 8 bits a pixel.
TrainOptions with_defaults(TrainOptions options, const Dataset& dataset);

// "wdbc: 569 rows, 30 features, 2 classes; a fixed, stratified test split of 20 %"
std::string dataset_line(const Dataset& dataset, const TrainOptions& options);

// The rows that these options divide the data into; `fold` counts from 0 where options.folds > 0.
Split split_of(const Dataset& dataset, const TrainOptions& options, int fold);

// Trains on split.train, watches split.val, and looks at split.test once, at the end. Epochs and
// batch must be set; without a label smoothing there is none, without `pixels` they are linear.
// Throws Interrupted where the observer asks for it: before it begins, or when a step is done.
RunResult train(const Dataset& dataset, const Split& split, const TrainOptions& options);

// The same of a recipe that no file holds; it begins anew. options.recipe and overrides are but
// names then.
RunResult train(const Dataset& dataset, const Split& split, const TrainOptions& options,
                const Recipe& recipe);

// The run that the options describe: the fixed split, or all folds and their mean.
RunResult train(const Dataset& dataset, const TrainOptions& options);

}  // namespace tritgrad
