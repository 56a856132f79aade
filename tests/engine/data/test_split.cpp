#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "engine/data/open_dataset.h"
#include "engine/data/split.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_split {
namespace {

using Rows = RowNumbers;

// Every row of [0, rows) is in exactly one of the parts, each in increasing order.
void check_partition(const std::vector<Rows>& parts, std::int64_t rows) {
  Rows all;
  for (const Rows& part : parts) {
    CHECK(std::is_sorted(part.begin(), part.end()));
    all.insert(all.end(), part.begin(), part.end());
  }
  std::sort(all.begin(), all.end());
  Rows expected(static_cast<std::size_t>(rows));
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(all == expected);
}

// Rows of each class differ from `fraction` of the class by less than one.
void check_proportions(const Dataset& data, const Rows& whole, const Rows& part, double fraction) {
  std::vector<double> of_whole(data.class_names.size()), of_part(data.class_names.size());
  for (std::int32_t row : whole)
    ++of_whole[static_cast<std::size_t>(data.labels[static_cast<std::size_t>(row)])];
  for (std::int32_t row : part)
    ++of_part[static_cast<std::size_t>(data.labels[static_cast<std::size_t>(row)])];
  for (std::size_t label = 0; label < of_whole.size(); ++label) {
    CHECK(std::abs(of_part[label] - fraction * of_whole[label]) < 1.0);
  }
}

Rows all_rows(const Dataset& data) {
  Rows rows(static_cast<std::size_t>(data.rows));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

TEST_CASE("split: the fixed split is a stratified partition, the same every time") {
  for (const char* name : {"iris", "wdbc", "digits", "wine"}) {
    const Dataset data = open_dataset(name);
    for (double fraction : {0.01, 0.2, 1.0 / 3, 0.9}) {
      CAPTURE(name);
      CAPTURE(fraction);
      const Split split = fixed_split(data, fraction);
      check_partition({split.train, split.test}, data.rows);
      check_proportions(data, all_rows(data), split.test, fraction);
      CHECK(static_cast<std::int64_t>(split.test.size()) ==
            std::llround(fraction * static_cast<double>(data.rows)));
      CHECK(fixed_split(data, fraction).test == split.test);
    }
  }
}

TEST_CASE("split: a published test set is used as it is") {
  Dataset data = open_dataset("iris");
  data.published_test_rows = 40;
  const Split split = fixed_split(data);
  check_partition({split.train, split.test}, 150);
  CHECK(split.test.front() == 110);
  CHECK(split.test.size() == 40);
}

TEST_CASE("split: folds cover every row once, balanced in size and class") {
  const Dataset data = open_dataset("wdbc");
  for (int folds : {2, 5, 7}) {
    CAPTURE(folds);
    std::vector<Rows> tests;
    for (int fold = 0; fold < folds; ++fold) {
      const Split split = fold_split(data, folds, fold, 1);
      check_partition({split.train, split.test}, data.rows);
      check_proportions(data, all_rows(data), split.test, 1.0 / folds);
      CHECK(std::abs(static_cast<double>(split.test.size()) - 569.0 / folds) < 1.0);
      tests.push_back(split.test);
    }
    check_partition(tests, data.rows);
  }
  CHECK(fold_split(data, 5, 0, 1).test == fold_split(data, 5, 0, 1).test);
  CHECK(fold_split(data, 5, 0, 1).test != fold_split(data, 5, 0, 2).test);
}

TEST_CASE("split: folds leave the published test set alone") {
  Dataset data = open_dataset("iris");
  data.published_test_rows = 30;
  const Split split = fold_split(data, 3, 0, 0);
  check_partition({split.train, split.test}, 120);
}

TEST_CASE("split: validation rows come from the training rows") {
  const Dataset data = open_dataset("digits");
  const Split before = fixed_split(data);
  const Split after = carve_validation(before, data, 0.1);
  check_partition({after.train, after.val, after.test}, data.rows);
  check_proportions(data, before.train, after.val, 0.1);
  CHECK(after.test == before.test);
  CHECK(carve_validation(before, data, 0.1).val == after.val);
}

TEST_CASE("split: impossible demands are refused with their values") {
  const Dataset data = open_dataset("wine");
  CHECK(contains(refusal([&] { fold_split(data, 1, 0, 0); }), "folds: 1 found, at least 2"));
  CHECK(contains(refusal([&] { fold_split(data, 5, 5, 0); }), "fold: 5 found, 0 to 4"));
  CHECK(
      contains(refusal([&] { fold_split(data, 49, 0, 0); }), "\"cultivar_3\" of wine has only 48"));
  CHECK(contains(refusal([&] { fixed_split(data, 0.0); }), "test fraction 0 found"));
  CHECK(contains(refusal([&] { fixed_split(data, 1.0); }), "test fraction 1 found"));
  CHECK(contains(refusal([&] { fixed_split(data, std::nan("")); }), "test fraction nan found"));
  CHECK(contains(refusal([&] { fixed_split(data, 1e-6); }), "leaves a part empty"));
  CHECK(contains(refusal([&] { carve_validation(fixed_split(data), data, -1); }),
                 "validation fraction -1"));
}

TEST_CASE("split: a class of too few rows for the folds, and what is said to do about it") {
  const auto table = [](const std::string& last) {
    return parse_csv("1,a\n2,a\n3,a\n4,b\n5,b\n6,b\n7,a\n8,b\n" + last, "t.csv");
  };
  const Dataset lone = table("9,c\n"), pair = table("9,c\n10,c\n");
  CHECK(contains(refusal([&] { fold_split(lone, 2, 0, 1); }),
                 "class \"c\" of t.csv has only 1 row; leave that class out, or train without "
                 "folds"));
  CHECK(fold_split(table(""), 2, 0, 1).test.size() == 4);
  CHECK_FALSE(fixed_split(lone).test.empty());
  CHECK(contains(refusal([&] { fold_split(pair, 3, 0, 1); }),
                 "has only 2 rows; use 2 folds at most (--folds 2)"));
  CHECK(fold_split(pair, 2, 0, 1).test.size() == 5);
  // The first number that is named is one that works, whatever other classes there are.
  const Dataset uneven = table("9,c\n10,c\n11,c\n12,d\n13,d\n");
  CHECK(contains(refusal([&] { fold_split(uneven, 9, 0, 1); }),
                 "class \"d\" of t.csv has only 2 rows; use 2 folds at most (--folds 2)"));
  CHECK(fold_split(uneven, 2, 0, 1).train.size() == 6);
  const Dataset both = table("9,c\n10,c\n11,c\n12,d\n13,e\n");
  CHECK(contains(refusal([&] { fold_split(both, 4, 0, 1); }),
                 "2 classes, such as \"d\", of t.csv have only 1 row; leave those classes out and "
                 "use 3 folds at most (--folds 3), or train without folds"));
  CHECK(fold_split(table("9,c\n10,c\n11,c\n"), 3, 0, 1).train.size() == 7);
  CHECK_FALSE(fixed_split(both).test.empty());
}

}  // namespace
}  // namespace tritgrad::test::test_split
