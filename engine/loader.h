// Batches of standardised rows, in an order that can be resumed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/dataset.h"
#include "engine/standardizer.h"
#include "engine/tensor.h"

namespace tritgrad {

// Valid until the next call of Loader::next().
struct Batch {
  Tensor x;  // [rows x features], standardised
  std::span<const std::int32_t> labels;
};

class Loader {
 public:
  struct Cursor {
    std::int64_t epoch = 0;
    std::int64_t position = 0;  // batches done in this epoch
    friend bool operator==(const Cursor&, const Cursor&) = default;
  };

  // The order of an epoch is a function of (seed, epoch) alone; without `shuffle` it is that of `rows`.
  // The last batch of an epoch may be smaller; where it would have a single row beside others, that row
  // joins the batch before it (batch statistics need two). A batch size above the number of rows means
  // all rows. All memory is taken here.
  Loader(const Dataset& dataset, std::vector<std::int32_t> rows, const Standardizer& standardizer,
         std::int64_t batch_size, std::uint64_t seed, bool shuffle);

  Batch next();
  std::int64_t batches_per_epoch() const { return batches_; }

  Cursor cursor() const { return cursor_; }
  // The loader goes on as the one that had this cursor. Throws Error for a position outside the epoch.
  void set_cursor(const Cursor& cursor);

 private:
  void order_epoch();

  const Dataset* dataset_;
  const Standardizer* standardizer_;
  std::vector<std::int32_t> rows_;
  std::vector<std::int32_t> order_;
  std::vector<std::int32_t> labels_;
  std::int64_t batch_size_;
  std::int64_t batches_;
  std::uint64_t seed_;
  bool shuffle_;
  Cursor cursor_;
  Buffer values_;
};

}  // namespace tritgrad
