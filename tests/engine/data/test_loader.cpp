#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "engine/data/loader.h"
#include "engine/data/open_dataset.h"
#include "engine/memory/ledger.h"
#include "engine/memory/parallel.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_loader {
namespace {

using Rows = std::vector<std::int32_t>;
using Cursor = Loader::Cursor;

// One feature that equals the row number, so that a batch tells which rows it holds.
Dataset numbered(std::int64_t rows) {
  Dataset data;
  data.name = "numbered";
  data.class_names = {"even", "odd"};
  data.allocate(rows, 1, Element::kFloat32);
  for (std::int64_t i = 0; i < rows; ++i) {
    data.values.as<float>()[i] = static_cast<float>(i);
    data.labels.push_back(static_cast<std::int32_t>(i % 2));
  }
  return data;
}

Rows range(std::int32_t begin, std::int32_t end) {
  Rows rows(static_cast<std::size_t>(end - begin));
  std::iota(rows.begin(), rows.end(), begin);
  return rows;
}

const Standardizer kIdentity({0.0f}, {1.0f});

std::vector<float> values(const Batch& batch) {
  return {batch.x.data, batch.x.data + batch.x.size()};
}

// The values of one epoch, batch after batch.
std::vector<float> epoch(Loader& loader) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
    for (float x : values(loader.next())) all.push_back(x);
  }
  return all;
}

TEST_CASE("loader: evaluation gives every row once, in order, with its label") {
  const Dataset data = numbered(20);
  Loader loader(data, range(3, 16), kIdentity, 4, 0, RowOrder::kAsGiven);
  CHECK(loader.batches_per_epoch() == 4);
  CHECK(loader.rows_per_epoch() == 13);
  std::int32_t row = 3;
  for (int i = 0; i < 4; ++i) {
    const Batch batch = loader.next();
    CHECK(batch.x.shape == Shape{i < 3 ? 4 : 1, 1});
    for (std::size_t j = 0; j < batch.labels.size(); ++j, ++row) {
      CHECK(batch.x.data[j] == static_cast<float>(row));
      CHECK(batch.labels[j] == row % 2);
    }
  }
  CHECK(row == 16);
  CHECK(loader.cursor() == Cursor{1, 0});
}

TEST_CASE("loader: shuffled epochs are permutations, and differ by epoch and seed") {
  const Dataset data = numbered(50);
  Loader loader(data, range(0, 50), kIdentity, 8, 1, RowOrder::kShuffled);
  Loader other(data, range(0, 50), kIdentity, 8, 2, RowOrder::kShuffled);
  const auto first = epoch(loader);
  const auto second = epoch(loader);
  CHECK(first != second);
  CHECK(first != epoch(other));
  for (auto sorted : {first, second}) {
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < 50; ++i) CHECK(sorted[i] == static_cast<float>(i));
  }
}

TEST_CASE("loader: the order of an epoch does not depend on the batch size or the past") {
  const Dataset data = numbered(48);
  Loader small(data, range(0, 48), kIdentity, 6, 9, RowOrder::kShuffled);
  Loader large(data, range(0, 48), kIdentity, 16, 9, RowOrder::kShuffled);
  epoch(small);
  const auto second = epoch(small);
  large.seek({1, 0});
  CHECK(epoch(large) == second);
}

TEST_CASE("loader: resumed at any cursor it gives what the uninterrupted one gives") {
  const Dataset data = open_dataset("iris");
  const Standardizer standardizer = Standardizer::fit(data, range(0, 150));
  const auto make = [&] {
    return Loader(data, range(0, 150), standardizer, 32, 5, RowOrder::kShuffled);
  };
  constexpr int kBatches = 12;  // more than two epochs of five batches
  for (int stop = 0; stop < kBatches; ++stop) {
    CAPTURE(stop);
    Loader uninterrupted = make();
    for (int i = 0; i < stop; ++i) uninterrupted.next();
    Loader resumed = make();
    resumed.seek(uninterrupted.cursor());
    for (int i = stop; i < kBatches; ++i) {
      const Batch expected = uninterrupted.next();
      const Batch found = resumed.next();
      CHECK(values(found) == values(expected));
      CHECK(std::equal(found.labels.begin(), found.labels.end(), expected.labels.begin(),
                       expected.labels.end()));
      CHECK(resumed.cursor() == uninterrupted.cursor());
    }
  }
}

TEST_CASE("loader: a lone last row is left out of training, never of evaluation") {
  const Dataset data = numbered(9);
  Loader train(data, range(0, 9), kIdentity, 4, 0, RowOrder::kShuffled);
  CHECK(train.batches_per_epoch() == 2);
  CHECK(train.rows_per_epoch() == 8);
  CHECK(epoch(train).size() == 8);
  Loader test(data, range(0, 9), kIdentity, 4, 0, RowOrder::kAsGiven);
  CHECK(test.batches_per_epoch() == 3);
  CHECK(epoch(test).size() == 9);
  // Batches of one row are what was asked for, and a single row is all there is.
  CHECK(Loader(data, range(0, 9), kIdentity, 1, 0, RowOrder::kShuffled).batches_per_epoch() == 9);
  CHECK(Loader(data, range(0, 1), kIdentity, 4, 0, RowOrder::kShuffled).batches_per_epoch() == 1);
}

TEST_CASE("loader: a batch above the number of rows means all rows") {
  const Dataset data = numbered(5);
  Loader loader(data, range(0, 5), kIdentity, 1000, 0, RowOrder::kShuffled);
  CHECK(loader.batches_per_epoch() == 1);
  CHECK(loader.next().x.rows() == 5);
  CHECK(loader.cursor() == Cursor{1, 0});
}

TEST_CASE("loader: rows are standardised; threads change nothing") {
  const Dataset data = open_dataset("digits");
  const Standardizer standardizer = Standardizer::fit(data, range(0, 1797));
  std::vector<float> expected;
  for (int threads : {1, 2, 4, 7}) {
    set_thread_count(threads);
    // 1024 rows of 64 features: four units of work.
    Loader loader(data, range(0, 1797), standardizer, 1024, 3, RowOrder::kShuffled);
    const auto found = epoch(loader);
    if (threads == 1) expected = found;
    CHECK(found == expected);
  }
  set_thread_count(0);
  std::vector<float> row(64);
  data.gather(1, row.data());
  standardizer.apply(row);
  Loader ordered(data, range(0, 1797), standardizer, 16, 0, RowOrder::kAsGiven);
  const Batch batch = ordered.next();
  CHECK(std::equal(row.begin(), row.end(), batch.x.row(1)));
}

TEST_CASE("loader: bytes are standardised as by hand, each of the 256") {
  Dataset data;
  data.name = "bytes";
  data.class_names = {"dark", "light"};
  data.allocate(2, 256, Element::kByte);
  data.image = {16, 16, 1};
  data.labels = {0, 1};
  for (std::int64_t i = 0; i < 512; ++i) {
    data.values.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(i < 256 ? i : 511 - i);
  }
  for (const PixelScale scale : {PixelScale::kLinear, PixelScale::kSquareRoot}) {
    const Standardizer standardizer({0.37f}, {1.7f}, scale);
    Loader loader(data, range(0, 2), standardizer, 2, 0, RowOrder::kAsGiven);
    const Batch batch = loader.next();
    for (std::int64_t row = 0; row < 2; ++row) {
      std::vector<float> expected(256);
      data.gather(row, expected.data());
      standardizer.apply(expected);
      CHECK(std::equal(expected.begin(), expected.end(), batch.x.row(row)));
    }
  }
}

TEST_CASE("loader: the memory of a batch and of the orders of rows is counted as data, once") {
  const Dataset data = numbered(100);
  const std::int64_t before = ledger::live(Category::kData);
  Loader loader(data, range(0, 100), kIdentity, 10, 0, RowOrder::kShuffled);
  // A feature and a label of ten rows; the rows as they were given, and in the order of an epoch.
  constexpr std::int64_t kHeld = 10 * (4 + 4) + 2 * 100 * 4;
  CHECK(ledger::live(Category::kData) - before == kHeld);
  const Batch first = loader.next();
  for (int i = 0; i < 25; ++i) CHECK(loader.next().x.data == first.x.data);
  CHECK(ledger::live(Category::kData) - before == kHeld);
}

TEST_CASE("loader: a share has memory for its own rows, those of a smaller last batch included") {
  const Dataset data = numbered(14);
  // Three rows of a feature and a label; both orders of rows are of the whole set.
  const std::int64_t held = 3 * (4 + 4) + 2 * 4 * data.rows;
  const std::int64_t before = ledger::live(Category::kData);
  Loader loader(data, range(0, 14), kIdentity, 8, 0, RowOrder::kAsGiven);
  // A quarter of a whole batch, but half of the last one, which has 6 rows.
  loader.restrict_to([](std::int64_t whole) {
    return std::pair<std::int64_t, std::int64_t>(whole == 8 ? 6 : 3, whole);
  });
  CHECK(ledger::live(Category::kData) - before == held);
  CHECK(epoch(loader) == std::vector<float>{6, 7, 11, 12, 13});
  CHECK(ledger::live(Category::kData) - before == held);
}

TEST_CASE("loader: bad arguments are refused with their values") {
  const Dataset data = numbered(10);
  const auto refused = [&](Rows rows, std::int64_t batch) {
    return refusal([&] { Loader(data, rows, kIdentity, batch, 0, RowOrder::kShuffled); });
  };
  CHECK(contains(refused({}, 4), "no rows of numbered"));
  CHECK(contains(refused({1}, 0), "batch size 0 found"));
  CHECK(contains(refused({10}, 1), "row 10 found, numbered has rows 0 to 9"));
  CHECK(contains(refused({-1}, 1), "row -1 found"));
  Loader loader(data, range(0, 10), kIdentity, 4, 0, RowOrder::kShuffled);
  CHECK(contains(refusal([&] { loader.seek({0, 3}); }), "position 3 found, 0 to 2"));
  CHECK(contains(refusal([&] { loader.seek({-1, 0}); }), "epoch -1 found"));
  const Dataset iris = open_dataset("iris");
  const Standardizer wrong({1, 2}, {1, 1});
  CHECK(contains(
      refusal([&] { Loader(iris, DataVector<std::int32_t>{0}, wrong, 1, 0, RowOrder::kAsGiven); }),
      "fitted to 2 features, the data has 4"));
}

}  // namespace
}  // namespace tritgrad::test::test_loader
