// The plain result of one training run: what the report, the comparison table and scripts read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/bytes_by_category.h"
#include "models/training/confusion.h"
#include "models/training/metric.h"

namespace tritgrad {

// Scores are of the metric of the run.
struct EpochPoint {
  double epoch = 0;
  double train_loss = 0;
  double train_score = 0;
  std::optional<double> val_score;
};

// Seconds of wall time, by phase of the run.
struct TimeSpent {
  double preparing = 0;   // statistics of the data, the model, a checkpoint that is resumed
  double batches = 0;     // rows gathered and standardised
  double steps = 0;       // forward, backward and update
  double evaluation = 0;  // rows held out after every epoch, and the test rows at the end
  double saving = 0;      // checkpoints

  TimeSpent& operator+=(const TimeSpent& other) {
    preparing += other.preparing;
    batches += other.batches;
    steps += other.steps;
    evaluation += other.evaluation;
    saving += other.saving;
    return *this;
  }
};

// The bytes that a rank of a data-parallel run sends to the others: gradients, statistics, sums.
struct Traffic {
  std::string method;
  int ranks = 1;
  std::int64_t micro_batches = 1;
  double bytes_per_step = 0;     // mean over the steps of this process, warm-up included
  double forecast_per_step = 0;  // by formula, of the same steps
  std::int64_t last_step_bytes = 0;
  std::int64_t last_step_forecast = 0;    // by formula, as if no vote abstained
  std::int64_t error_feedback_bytes = 0;  // that a rank keeps
  double last_step_bytes_per_parameter = 0;
  std::int64_t warmup_steps = 0;  // apmsqueeze: steps in full precision so far
};

struct RunResult {
  std::string data;
  std::string model;
  std::string recipe;
  std::vector<std::string> overrides;  // key=value, on the recipe
  std::string compute;                 // "int8" or "fp32": products with ternary weights
  double lr = 0;                       // of the weights, before the schedule
  std::uint64_t seed = 0;
  int epochs = 0;
  std::int64_t batch = 0;
  std::int64_t resize = 0;         // side of the images, 0: as they are in the data
  std::string augment;             // of the training images, see parse_augmentation()
  std::string imbalance = "none";  // what the loss did about uneven classes
  double label_smoothing = 0;      // of the targets, see softmax_cross_entropy()
  std::string pixels = "linear";   // what is standardised of a pixel, see parse_pixel_scale()
  std::int64_t steps = 0;
  double seconds = 0;  // all of the run, the final test included
  TimeSpent time;      // the rest of `seconds` is reporting
  std::int64_t parameters = 0;
  double train_loss = 0;              // what was minimised, smoothed labels included
  Metric metric = Metric::kAccuracy;  // of all scores
  std::optional<double> val_score;
  std::optional<double> test_score;  // mean over folds when folds > 0
  std::optional<double> test_score_std;
  std::optional<double> test_mae, test_r2;  // of regression, see Scores; means over folds
  std::optional<double> test_nats;          // of a language model, a token
  int folds = 0;                            // 0: one fixed test set
  std::optional<double> zero_fraction;      // absent: no ternary weights
  double flips_per_step = 0;                // weights whose trit changed, per optimizer step
  // The share of the sampled weights with updates that some watched update moved; it is below 1
  // where rounding to nearest loses updates or the learning rate is 0. Absent for resumed runs.
  std::optional<double> movable_fraction;
  std::int64_t skipped_updates = 0;   // steps with some left out, as something was not finite
  std::vector<std::string> warnings;  // what was found amiss, in the words of the command line
  std::string table;                 // of a user's table: how it was understood, see dataset_line()
  std::vector<std::string> remarks;  // on the data, see Remarks: warnings, then notes
  BytesPerParameter bytes_per_parameter;
  // What the ledger counted: the most at a time of all categories but data, and of data as they are
  // held all the while, with orders of rows and a batch. 0: an older version, which did not note
  // it.
  std::int64_t peak_live_bytes = 0;
  std::int64_t data_bytes = 0;
  std::string weights_sha256;
  std::string optimizer_sha256;  // of moments and whatever else rules keep
  std::vector<EpochPoint> curve;
  // Why training ended early: the loss, a gradient or a weight was no longer finite. Empty where it
  // did not; then there are no scores, bytes and hashes.
  std::string diverged;
  std::string machine;             // that trained it; empty: not noted
  std::optional<Traffic> traffic;  // of data-parallel runs
  // What became of the test rows, by class, and the mean recall, which of folds is their mean; only
  // where classes are uneven, see has_uneven_classes().
  std::optional<Confusion> confusion;
  std::optional<double> balanced_accuracy;
  bool cached = false;  // of an earlier comparison, with the wall time that it took then
};

// Returns the result of a cross-validated run: means over the folds; counts are added, the peak is
// the largest, and hashes are those of all hashes.
RunResult mean_of_folds(const std::vector<RunResult>& folds);

// Return the words of summaries for pixels and labels that were changed, "square roots of pixels"
// and "labels smoothed by 0.1"; empty where they were not.
std::string pixel_words(const RunResult& run);
std::string label_words(const RunResult& run);

// Returns one JSON object on one line, keys in a fixed order. Absent and non-finite numbers are
// null. Keys of scores name the metric, "test_accuracy"; `metric` appears only for another one than
// accuracy. `folds` and the spread of the score appear only for cross-validated runs, `diverged`
// and `cached` only for runs that are, `machine` only where it is noted, `traffic` only for
// data-parallel runs, `balanced_accuracy` and `confusion` only where classes are uneven.
std::string to_json(const RunResult& run);

// Returns the run that to_json() wrote: equal in every bit, but that numbers which are not finite
// come back as NaN, or absent where they are optional. Throws Error that names the key when one is
// missing or has the wrong type.
RunResult run_from_json(const std::string& json);

}  // namespace tritgrad
