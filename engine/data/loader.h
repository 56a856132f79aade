// Batches of standardised rows, in an order that is a pure function of (seed, epoch).
//
// Nothing but the cursor changes from batch to batch, so a loader whose cursor is set to a saved
// one gives exactly the batches that the uninterrupted one would have given, with any number of
// threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "engine/data/augmentation.h"
#include "engine/data/dataset.h"
#include "engine/data/standardizer.h"
#include "engine/data/targets.h"
#include "engine/memory/buffer.h"
#include "engine/random.h"
#include "engine/tensor.h"

namespace tritgrad {

enum class RowOrder {
  kShuffled,  // training: a new order in every epoch; of a text, windows that begin anywhere
  kAsGiven,   // evaluation: every row once, in order
};

struct Batch {
  Tensor x;                              // [rows x features], valid until the next call of next()
  std::span<const std::int32_t> labels;  // of classes, or of tokens: those of a window side by side
  std::span<const float> targets;        // of regression, standardised
  // These are rows [first, first + rows) of a batch of `whole` rows.
  std::int64_t first;
  std::int64_t whole;
  std::int64_t labels_per_row = 1;

  std::int64_t rows() const { return x.rows(); }
  // Returns `n` of its rows, from number `begin` on.
  Batch part(std::int64_t begin, std::int64_t n) const;
};

class Loader {
 public:
  struct Cursor {
    std::int64_t epoch = 0;
    std::int64_t position = 0;  // batches already given in this epoch
    friend bool operator==(const Cursor&, const Cursor&) = default;
  };

  // The data set must outlive the loader. A batch size above the number of rows means all rows at
  // once.
  //
  // The last batch of an epoch may be smaller. One exception: a shuffled epoch ends without its
  // last batch when that would be a single row among larger ones, because batch statistics of one
  // row are void; the row left out differs from epoch to epoch.
  //
  // Augmentation changes every row anew in every epoch, before it is standardised. The scale is
  // that of the targets of regression. The training rows of a text are its first ones.
  Loader(const Dataset& dataset, std::span<const std::int32_t> rows, Standardizer standardizer,
         std::int64_t batch_size, std::uint64_t seed, RowOrder order,
         const Augmentation& augmentation = {}, const TargetScale& target_scale = {});

  std::int64_t batches_per_epoch() const { return batches_; }
  // Rows given in one epoch: all, or all but one (see above).
  std::int64_t rows_per_epoch() const { return rows_per_epoch_; }

  // From now on an epoch of training windows of a text has so many; at first, as many as rows.
  void set_epoch(std::int64_t windows);
  // From now on batches hold only rows [first, last) = share(whole) of the `whole` ones they have,
  // and have no memory for others.
  using Share = std::function<std::pair<std::int64_t, std::int64_t>(std::int64_t whole)>;
  void restrict_to(Share share);

  // The next batch; after the last one of an epoch the next epoch begins. Allocates nothing.
  Batch next();

  Cursor cursor() const { return cursor_; }
  // position is in [0, batches_per_epoch()).
  void seek(Cursor cursor);

 private:
  void allocate();
  void shuffle(std::int64_t epoch);
  Batch next_of_text(std::int64_t first, std::int64_t count, std::int64_t whole);
  // Features of a row, augmented and standardised.
  void read_row(std::int32_t row, const RandomKey& key, float* out) const;

  const Dataset* dataset_;
  DataVector<std::int32_t> rows_;
  DataVector<std::int32_t> order_;  // rows_ in the order of epoch order_epoch_
  Standardizer standardizer_;
  std::int64_t batch_size_;
  std::int64_t rows_per_epoch_;
  std::int64_t batches_;
  std::uint64_t seed_;
  bool shuffled_;
  Augmentation augmentation_;
  TargetScale target_scale_;
  std::vector<float> of_bytes_;  // all there can be of a feature, where rows are bytes of one scale
  std::int64_t order_epoch_ = -1;
  Cursor cursor_;
  Share share_ = [](std::int64_t whole) { return std::pair<std::int64_t, std::int64_t>(0, whole); };
  Buffer x_;
  Buffer labels_;  // or the targets of regression
};

}  // namespace tritgrad
