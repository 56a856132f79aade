#include "engine/loader.h"

#include <algorithm>

#include "engine/check.h"
#include "engine/parallel.h"
#include "engine/random.h"

namespace tritgrad {

Loader::Loader(const Dataset& dataset, std::vector<std::int32_t> rows, const Standardizer& standardizer,
               std::int64_t batch_size, std::uint64_t seed, bool shuffle)
    : dataset_(&dataset),
      standardizer_(&standardizer),
      rows_(std::move(rows)),
      order_(rows_),
      seed_(seed),
      shuffle_(shuffle) {
  check(!rows_.empty(), "Loader: no rows of '", dataset.name, "' to load");
  check(batch_size > 0, "Loader: a batch of ", batch_size, " rows; at least 1 is needed");
  const auto count = static_cast<std::int64_t>(rows_.size());
  batch_size_ = std::min(batch_size, count);
  batches_ = (count + batch_size_ - 1) / batch_size_;
  const bool lonely = batch_size_ > 1 && count % batch_size_ == 1;
  if (lonely) --batches_;
  const std::int64_t largest = batch_size_ + (lonely ? 1 : 0);
  labels_.resize(static_cast<std::size_t>(largest));
  values_ = Buffer(static_cast<std::size_t>(largest * dataset.features) * sizeof(float), Category::kData);
  order_epoch();
}

void Loader::order_epoch() {
  if (!shuffle_) return;
  order_ = rows_;
  const RandomKey key{seed_, random_stream("shuffle"), static_cast<std::uint32_t>(cursor_.epoch)};
  for (std::size_t i = order_.size(); i > 1; --i) {
    std::swap(order_[i - 1], order_[random_below(key, i, static_cast<std::uint32_t>(i))]);
  }
}

Batch Loader::next() {
  if (cursor_.position == batches_) {
    ++cursor_.epoch;
    cursor_.position = 0;
    order_epoch();
  }
  const std::int64_t begin = cursor_.position * batch_size_;
  const auto count = static_cast<std::int64_t>(order_.size());
  const std::int64_t end = cursor_.position + 1 == batches_ ? count : begin + batch_size_;
  ++cursor_.position;

  const Batch batch{{values_.as<float>(), {end - begin, dataset_->features}},
                    std::span(labels_).first(static_cast<std::size_t>(end - begin))};
  parallel_ranges(end - begin, 16, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int32_t row = order_[static_cast<std::size_t>(begin + i)];
      dataset_->gather(row, batch.x.row(i));
      standardizer_->apply(batch.x.row(i));
      labels_[static_cast<std::size_t>(i)] = dataset_->labels[static_cast<std::size_t>(row)];
    }
  });
  return batch;
}

void Loader::set_cursor(const Cursor& cursor) {
  check(cursor.epoch >= 0 && cursor.position >= 0 && cursor.position <= batches_, "Loader: position ",
        cursor.position, " of epoch ", cursor.epoch, " is outside an epoch of ", batches_, " batches");
  cursor_ = cursor;
  order_epoch();
}

}  // namespace tritgrad
