#include "engine/data/loader.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "engine/check.h"
#include "engine/data/token_text.h"
#include "engine/memory/parallel.h"

namespace tritgrad {

Batch Batch::part(std::int64_t begin, std::int64_t n) const {
  const auto of_part = [&](auto all, std::int64_t per_row) {
    return all.empty() ? all
                       : all.subspan(static_cast<std::size_t>(begin * per_row),
                                     static_cast<std::size_t>(n * per_row));
  };
  return {{x.row(begin), {n, x.cols()}},
          of_part(labels, labels_per_row),
          of_part(targets, 1),
          first + begin,
          whole,
          labels_per_row};
}

Loader::Loader(const Dataset& dataset, std::span<const std::int32_t> rows,
               Standardizer standardizer, std::int64_t batch_size, std::uint64_t seed,
               RowOrder order, const Augmentation& augmentation, const TargetScale& target_scale)
    : dataset_(&dataset),
      rows_(rows.begin(), rows.end()),
      order_(rows_),
      standardizer_(std::move(standardizer)),
      seed_(seed),
      shuffled_(order == RowOrder::kShuffled),
      augmentation_(augmentation),
      target_scale_(target_scale) {
  const auto count = static_cast<std::int64_t>(rows_.size());
  check(count > 0, "Loader: no rows of ", dataset.name, " given, at least one needed");
  check(batch_size > 0, "Loader: batch size ", batch_size, " found, at least 1 needed");
  for (std::int32_t row : rows_) {
    check(row >= 0 && row < dataset.rows, "Loader: row ", row, " found, ", dataset.name,
          " has rows 0 to ", dataset.rows - 1);
  }
  standardizer_.check_features(dataset.features);
  check_augmentation(augmentation, dataset);
  if (dataset.has_byte_pixels() && standardizer_.means().size() == 1 &&
      !augmentation.changes_anything()) {
    of_bytes_.resize(256);
    std::iota(of_bytes_.begin(), of_bytes_.end(), 0.0f);
    standardizer_.apply(of_bytes_);
  }
  batch_size_ = std::min(batch_size, count);
  const bool lone_row = shuffled_ && batch_size_ > 1 && count % batch_size_ == 1;
  rows_per_epoch_ = lone_row ? count - 1 : count;
  batches_ = (rows_per_epoch_ + batch_size_ - 1) / batch_size_;
  allocate();
}

void Loader::set_epoch(std::int64_t windows) {
  check(dataset_->is_text() && shuffled_ && windows > 0, "Loader: an epoch of ", windows,
        " windows asked for; only training windows of a text are drawn");
  batch_size_ = std::min(batch_size_, windows);
  rows_per_epoch_ = windows;
  batches_ = (rows_per_epoch_ + batch_size_ - 1) / batch_size_;
  allocate();
}

void Loader::restrict_to(Share share) {
  share_ = std::move(share);
  allocate();
}

// The last batch may be smaller, and yet the share of it larger: it may have fewer parts.
void Loader::allocate() {
  std::int64_t most = 0;
  for (const std::int64_t whole : {batch_size_, rows_per_epoch_ - (batches_ - 1) * batch_size_}) {
    const auto [first, last] = share_(whole);
    most = std::max(most, last - first);
  }
  const auto rows = static_cast<std::size_t>(most);
  x_ = Buffer();
  x_ = Buffer(rows * static_cast<std::size_t>(dataset_->features) * sizeof(float), Category::kData);
  static_assert(sizeof(std::int32_t) == sizeof(float));
  labels_ = Buffer(rows * static_cast<std::size_t>(dataset_->labels_per_row()) * sizeof(float),
                   Category::kData);
}

void Loader::seek(Cursor cursor) {
  check(cursor.epoch >= 0 && cursor.epoch <= std::numeric_limits<std::uint32_t>::max(),
        "Loader: epoch ", cursor.epoch, " found, 0 to 4294967295 expected");
  check(cursor.position >= 0 && cursor.position < batches_, "Loader: position ", cursor.position,
        " found, 0 to ", batches_ - 1, " expected; was the batch size or the data set changed?");
  cursor_ = cursor;
}

// Fisher-Yates on the rows as given, never on the order of the epoch before.
void Loader::shuffle(std::int64_t epoch) {
  const RandomKey key{seed_, random_stream("shuffle"), static_cast<std::uint32_t>(epoch)};
  std::copy(rows_.begin(), rows_.end(), order_.begin());
  for (std::size_t i = order_.size(); i > 1; --i) {
    std::swap(order_[i - 1], order_[random_below(key, i, static_cast<std::uint32_t>(i))]);
  }
  order_epoch_ = epoch;
}

void Loader::read_row(std::int32_t row, const RandomKey& key, float* out) const {
  const std::int64_t features = dataset_->features;
  if (!of_bytes_.empty()) {
    const std::uint8_t* bytes = dataset_->values.as<std::uint8_t>() + row * features;
    const float* of_bytes = of_bytes_.data();
    for (std::int64_t i = 0; i < features; ++i) out[i] = of_bytes[bytes[i]];
    return;
  }
  dataset_->gather(row, out);
  if (augmentation_.changes_anything()) {
    augment(out, dataset_->image, augmentation_, key, static_cast<std::uint64_t>(row));
  }
  const std::span<float> values(out, static_cast<std::size_t>(features));
  if (dataset_->has_missing) standardizer_.fill(values);
  standardizer_.apply(values);
}

Batch Loader::next_of_text(std::int64_t first, std::int64_t count, std::int64_t whole) {
  const TokenText& text = *dataset_->text;
  const std::int64_t tokens = dataset_->features;
  const RandomKey key{seed_, random_stream("windows"), static_cast<std::uint32_t>(cursor_.epoch)};
  const auto places = static_cast<std::uint32_t>((std::ssize(rows_) - 1) * tokens + 1);
  auto* labels = labels_.as<std::int32_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(cursor_.position * batch_size_ + first + i);
    const std::int64_t begin = shuffled_ ? random_below(key, at, places) : rows_[at] * tokens;
    float* x = x_.as<float>() + i * tokens;
    std::int32_t* next = labels + i * tokens;
    text.read(begin, tokens, next);
    std::copy_n(next, tokens, x);
    text.read(begin + 1, tokens, next);
  }
  if (++cursor_.position == batches_) cursor_ = {cursor_.epoch + 1, 0};
  const std::span<const std::int32_t> all(labels, static_cast<std::size_t>(count * tokens));
  return {{x_.as<float>(), {count, tokens}}, all, {}, first, whole, tokens};
}

Batch Loader::next() {
  const bool of_text = dataset_->is_text();
  if (shuffled_ && !of_text && order_epoch_ != cursor_.epoch) shuffle(cursor_.epoch);
  const std::int64_t whole =
      std::min(batch_size_, rows_per_epoch_ - cursor_.position * batch_size_);
  const auto [share_begin, share_end] = share_(whole);
  const std::int64_t begin = cursor_.position * batch_size_ + share_begin;
  const std::int64_t count = share_end - share_begin;
  if (of_text) return next_of_text(share_begin, count, whole);
  const std::int64_t features = dataset_->features;
  const RandomKey key{seed_, random_stream("augmentation"),
                      static_cast<std::uint32_t>(cursor_.epoch)};
  float* x = x_.as<float>();
  const bool regression = dataset_->is_regression();
  auto* labels = regression ? nullptr : labels_.as<std::int32_t>();
  auto* targets = regression ? labels_.as<float>() : nullptr;
  constexpr std::int64_t kValuesPerUnit = 16384;  // enough work to be worth a thread
  constexpr std::int64_t kRowsAhead = 4;
  parallel_ranges(count, kValuesPerUnit / features, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int32_t row = order_[static_cast<std::size_t>(begin + i)];
      // Shuffled rows lie anywhere: the processor's own prefetching does not see them coming.
      if (i + kRowsAhead < last) {
        const auto ahead = static_cast<std::size_t>(begin + i + kRowsAhead);
        dataset_->prefetch(order_[ahead]);
      }
      read_row(row, key, x + i * features);
      const auto at = static_cast<std::size_t>(row);
      if (regression) {
        targets[i] = target_scale_.standardised(dataset_->targets[at]);
      } else {
        labels[i] = dataset_->labels[at];
      }
    }
  });
  if (++cursor_.position == batches_) cursor_ = {cursor_.epoch + 1, 0};
  const auto n = static_cast<std::size_t>(count);
  return {{x, {count, features}},
          {labels, regression ? 0 : n},
          {targets, regression ? n : 0},
          share_begin,
          whole};
}

}  // namespace tritgrad
