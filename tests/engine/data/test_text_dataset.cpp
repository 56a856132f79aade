// A text as windows: how many, which of them train, what a batch holds, refusals.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "engine/data/loader.h"
#include "engine/data/open_dataset.h"
#include "engine/data/split.h"
#include "engine/data/text_dataset.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_text_dataset {
namespace {

// Byte i is i % 89, from "!" on, so that a window tells where it begins.
Dataset counting(const TempDir& dir, std::int64_t bytes, std::int64_t window) {
  std::string text;
  for (std::int64_t i = 0; i < bytes; ++i) text += static_cast<char>('!' + i % 89);
  const std::string path = dir.write("counting.txt", text);
  return text_dataset(std::make_shared<TokenText>(open_bytes(path)), "counting", window);
}

std::vector<float> inputs(const Batch& batch) {
  return {batch.x.data, batch.x.data + batch.x.size()};
}

const Standardizer kAsItIs({0.0f}, {1.0f});

TEST_CASE("text data: windows follow each other, and each token's label is the next one") {
  const TempDir dir;
  const Dataset data = counting(dir, 101, 10);
  CHECK(data.rows == 10);
  CHECK(data.features == 10);
  CHECK(data.outputs() == 256);
  CHECK(data.labels_per_row() == 10);
  Loader loader(data, RowNumbers{3, 4}, kAsItIs, 2, 0, RowOrder::kAsGiven);
  const Batch batch = loader.next();
  REQUIRE(batch.labels.size() == 20);
  for (std::int64_t i = 0; i < 20; ++i) {
    CHECK(batch.x.data[i] == static_cast<float>('!' + (30 + i) % 89));
    CHECK(batch.labels[static_cast<std::size_t>(i)] == '!' + (31 + i) % 89);
  }
  const Batch part = batch.part(1, 1);
  CHECK(part.labels.size() == 10);
  CHECK(part.labels[0] == '!' + 41 % 89);
  // One byte less, and the last window lacks its last label.
  CHECK(counting(dir, 100, 10).rows == 9);
}

TEST_CASE("text data: the last tenth tests, what is before it validates") {
  const TempDir dir;
  const Dataset data = counting(dir, 1001, 10);
  const Split split = carve_validation(fixed_split(data), data, 0.1);
  CHECK(split.train.front() == 0);
  CHECK(split.train.back() == 80);
  CHECK(split.val.front() == 81);
  CHECK(split.val.back() == 89);
  CHECK(split.test.front() == 90);
  CHECK(split.test.back() == 99);
}

TEST_CASE("text data: at most 262,144 tokens test") {
  const TempDir dir;
  const Dataset data = counting(dir, 3000001, 100);
  const Split split = fixed_split(data);
  CHECK(std::ssize(split.test) == 2621);
  CHECK(std::ssize(split.train) + std::ssize(split.test) == 30000);
}

TEST_CASE("text data: windows to train on begin anywhere in the training part, alike for a seed") {
  const TempDir dir;
  const Dataset data = counting(dir, 891, 10);  // 89 windows, so the place of each is seen
  std::vector<std::int32_t> rows(8);
  std::iota(rows.begin(), rows.end(), 0);
  Loader loader(data, rows, kAsItIs, 4, 1, RowOrder::kShuffled);
  CHECK(loader.batches_per_epoch() == 2);
  std::set<int> places;
  std::vector<std::vector<float>> seen;
  for (int step = 0; step < 200; ++step) {
    const Batch batch = loader.next();
    seen.push_back(inputs(batch));
    for (std::int64_t i = 0; i < 4; ++i) {
      const int begin = static_cast<int>(*batch.x.row(i)) - '!';
      places.insert(begin);
      for (int j = 0; j < 10; ++j) {
        REQUIRE(batch.x.row(i)[j] == static_cast<float>('!' + (begin + j) % 89));
      }
    }
  }
  // 8 windows of 10 tokens: 71 places from 0 to 70. 800 draws miss one with a chance of 1e-5 each.
  CHECK(*places.begin() == 0);
  CHECK(*places.rbegin() == 70);
  CHECK(places.size() == 71);

  Loader again(data, rows, kAsItIs, 4, 1, RowOrder::kShuffled);
  again.seek({50, 1});
  CHECK(inputs(again.next()) == seen[101]);
  Loader other(data, rows, kAsItIs, 4, 2, RowOrder::kShuffled);
  CHECK(inputs(other.next()) != seen[0]);
  // A rank's share of a batch is that part of it.
  Loader share(data, rows, kAsItIs, 4, 1, RowOrder::kShuffled);
  share.restrict_to([](std::int64_t) { return std::pair<std::int64_t, std::int64_t>(1, 3); });
  const Batch middle = share.next();
  CHECK(middle.first == 1);
  CHECK(inputs(middle) == std::vector<float>(seen[0].begin() + 10, seen[0].begin() + 30));
}

TEST_CASE("text data: an epoch has as many windows as are asked for") {
  const TempDir dir;
  const Dataset data = counting(dir, 891, 10);
  Loader loader(data, RowNumbers{0, 1, 2, 3, 4, 5}, kAsItIs, 4, 1, RowOrder::kShuffled);
  loader.set_epoch(10);
  CHECK(loader.batches_per_epoch() == 3);
  CHECK(loader.next().rows() == 4);
  loader.next();
  CHECK(loader.next().rows() == 2);
  CHECK(loader.cursor() == Loader::Cursor{1, 0});
}

TEST_CASE("text data: what is no text of enough tokens is refused") {
  const TempDir dir;
  CHECK(contains(refusal([&] { counting(dir, 20, 10); }),
                 "counting: 20 tokens found, at least 21 expected, two windows of the model's "
                 "context of 10"));
  const Dataset data = counting(dir, 21, 10);
  CHECK(contains(refusal([&] { carve_validation(fixed_split(data), data, 0.5); }),
                 "too few for a validation part"));
  CHECK(contains(refusal([&] { fold_split(data, 2, 0, 1); }), "is a text"));
  const std::string path = dir.write("short.txt", "text");
  CHECK(contains(refusal([&] { open_dataset("text:" + path); }),
                 "a text is for language models; give one, as in --model llama:4,256"));
}

}  // namespace
}  // namespace tritgrad::test::test_text_dataset
