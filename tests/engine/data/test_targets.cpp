// Labels that are numbers to predict: when they are taken for such, what is refused, their scale,
// batches and splits.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "engine/data/loader.h"
#include "engine/data/npy_dataset.h"
#include "engine/data/open_dataset.h"
#include "engine/data/split.h"
#include "engine/data/targets.h"
#include "tests/support/npy_files.h"
#include "tests/support/parsed_csv.h"

namespace tritgrad::test::test_targets {
namespace {

// Labels 0 .. different-1, again and again, divided by `divisor`.
std::vector<double> labels(int rows, int different, double divisor = 1.0) {
  std::vector<double> all;
  for (int row = 0; row < rows; ++row) all.push_back((row % different) / divisor);
  return all;
}

std::string table_of(const std::vector<double>& targets) {
  std::string text = "a,y\n";
  for (const double target : targets) text += concat(target * target, ",", target, "\n");
  return text;
}

CsvOptions as(TaskKind task) {
  CsvOptions options;
  options.task = task;
  return options;
}

Dataset arrays_of(const std::vector<double>& targets, TaskKind task = TaskKind::kAuto) {
  const std::string rows = std::to_string(targets.size());
  const std::string x = npy_array<double>("<f8", "(" + rows + ", 1)", targets);
  const std::string y = npy_array<double>("<f8", "(" + rows + ",)", targets);
  const std::array pairs{NpyPair{x, y, "x.npy", "y.npy"}};
  return parse_npy_pairs(pairs, "arrays", nullptr, task);
}

}  // namespace

TEST_CASE("targets: which numbers look measured") {
  CHECK_FALSE(look_measured({}));
  CHECK_FALSE(look_measured(labels(40, 20, 7.0)));   // 20 values, whatever they are
  CHECK(look_measured(labels(4000, 21, 2.0)));       // 21 values, halves among them
  CHECK_FALSE(look_measured(labels(210, 21)));       // ten rows a value, all whole
  CHECK(look_measured(labels(209, 21)));             // fewer
  CHECK_FALSE(look_measured(labels(100000, 1000)));  // classes of an identifier
}

TEST_CASE("targets: tables and arrays take measured labels for numbers, and say so") {
  const std::vector<double> measured = labels(30, 30, 8.0), few = labels(30, 3);
  for (const Dataset& data : {parse(table_of(measured)), arrays_of(measured)}) {
    CHECK(data.is_regression());
    CHECK(data.targets == measured);
    CHECK(data.labels.empty());
    CHECK(data.classes() == 0);
    CHECK(data.outputs() == 1);
    REQUIRE(data.remarks.notes.size() == 1);
    CHECK(contains(data.remarks.notes[0], "30 different numbers in 30 rows"));
    CHECK(contains(data.remarks.notes[0], "--task classify"));
  }
  const std::vector<double> ages = labels(300, 25);  // a dozen rows a value
  for (const Dataset& data : {parse(table_of(ages)), arrays_of(ages)}) {
    CHECK(data.classes() == 25);
    REQUIRE(data.remarks.notes.size() == 1);
    CHECK(contains(data.remarks.notes[0],
                   ", has 25 different numbers in 300 rows, which are taken for classes; to "
                   "predict it as a number, say --task regress"));
  }
  for (const Dataset& data : {parse(table_of(few)), arrays_of(few)}) {
    CHECK_FALSE(data.is_regression());
    CHECK(data.outputs() == 3);
    CHECK(data.remarks.notes.empty());
  }
  for (const Dataset& data :
       {parse(table_of(few), as(TaskKind::kRegress)), arrays_of(few, TaskKind::kRegress)}) {
    CHECK(data.targets == few);
    CHECK(data.remarks.notes.empty());  // it was asked for
  }
  CHECK(parse(table_of(labels(50, 25, 8.0)), as(TaskKind::kClassify)).classes() == 25);
  CHECK_FALSE(parse("a,y\n1,x\n2,y\n").is_regression());
}

TEST_CASE("targets: a note where numbers become classes that may not have been meant as such") {
  CHECK(note_of_classes("'y'", {}).empty());
  CHECK(note_of_classes("'y'", labels(100, 10)).empty());
  CHECK(contains(note_of_classes("'y'", labels(100, 11)), "the label, 'y', has 11 different"));
  CHECK_FALSE(note_of_classes("'y'", labels(100, 4, 2.0)).empty());
  CHECK(parse(table_of(labels(100, 11)), as(TaskKind::kClassify)).remarks.notes.empty());
  CHECK(parse("a,y\n1,x\n2,y\n").remarks.notes.empty());
}

TEST_CASE("targets: labels far from all others are warned of, to those who train") {
  std::vector<double> targets = labels(40, 40, 8.0);
  const auto place = [](std::int64_t row) { return concat("row ", row); };
  CHECK(warning_of_outliers(targets, place).empty());
  // Two are cut off at each end: 0.25 to 4.75, of width 4.5.
  targets[7] = 4.75 + 45.0;
  CHECK(warning_of_outliers(targets, place).empty());
  targets[7] += 0.125;
  CHECK(
      warning_of_outliers(targets, place) ==
      "1 label lies far outside 0.25 to 4.75, where 90 % of them are: that of row 7 is 49.875; as "
      "errors are squared, few such rows outweigh all others: mend or remove them, or predict "
      "the logarithm");
  targets[7] = 1000.0;
  targets[9] = -1e6;
  CHECK(contains(warning_of_outliers(targets, place), "2 labels lie far outside"));
  CHECK(contains(warning_of_outliers(targets, place), "that of row 9 is -1e+06"));
  CHECK(warning_of_outliers(labels(19, 19, 8.0), place).empty());
  CHECK(warning_of_outliers(std::vector<double>(40, 3.0), place).empty());

  const Dataset table = parse(table_of(targets));
  REQUIRE(table.remarks.warnings.size() == 1);
  CHECK(contains(table.remarks.warnings[0], "that of t.csv, line 11 is -1e+06"));
  const Dataset arrays = arrays_of(targets);
  REQUIRE(arrays.remarks.warnings.size() == 1);
  CHECK(contains(arrays.remarks.warnings[0], "that of y.npy, row 9 is -1e+06"));
  CsvOptions scored = as(TaskKind::kRegress);
  scored.schema = table.schema.get();
  CHECK(parse(table_of(targets), scored).remarks.warnings.empty());
}

TEST_CASE("targets: what is no number to predict is refused with its line or row") {
  const CsvOptions regress = as(TaskKind::kRegress);
  CHECK(contains(refused("a,y\n1,2\n2,many\n", regress),
                 "t.csv, line 3: the label \"many\" is no number to predict; mend or remove"));
  CHECK(contains(refused("1,q\n2,3\n", regress),
                 "line 1: the label \"q\" is no number to predict; "
                 "if the first line holds names, say --header yes"));
  CHECK(contains(refused("a,y\n1,2\n2,\n", regress), "line 3: the label is empty; fill or remove"));
  CHECK(contains(refused("a,y\n1,2\n2,NaN\n", regress),
                 "line 3: the label \"NaN\" stands for a missing cell"));
  CHECK_FALSE(contains(refused("a,y\n1,2\n2,NaN\n", regress), "if it is a class"));
  for (const std::string text : {"inf", "1e39"}) {
    CHECK(contains(refused("a,y\n1,2\n2," + text + "\n", regress),
                   "line 3: the label is \"" + text + "\", a number up to 3.4e38 expected"));
  }
  CHECK(contains(refused("a,y\n1,2\n2,2.0\n", regress),
                 "all 2 rows have the label 2, at least two different numbers are needed"));
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const double odd : {kNan, std::numeric_limits<double>::infinity(), 1e39}) {
    std::vector<double> targets = labels(30, 30, 8.0);
    const Dataset good = arrays_of(targets);
    const std::string rows = "(30,)";
    const std::string x = npy_array<double>("<f8", "(30, 1)", targets);
    targets[7] = odd;
    const std::string y = npy_array<double>("<f8", rows, targets);
    const std::array pairs{NpyPair{x, y, "x.npy", "y.npy"}};
    CHECK(contains(refusal([&] { parse_npy_pairs(pairs, "arrays"); }),
                   "y.npy: the label of row 7 is "));
  }
  CHECK(contains(refusal([&] {
                   arrays_of({1, 1, 1}, TaskKind::kRegress);
                 }),
                 "all 3 rows have the label 1"));
  const std::string x = npy_array<double>("<f8", "(2, 1)", {1, 2});
  const std::string texts = npy_texts("<U4", "(2,)", {U"1.5", U"2"});
  const std::array pairs{NpyPair{x, texts, "x.npy", "y.npy"}};
  CHECK(
      contains(refusal([&] { parse_npy_pairs(pairs, "arrays", nullptr, TaskKind::kRegress); }),
               "y.npy: the labels are texts and no numbers to predict; save y.astype('float64')"));
  CHECK(contains(refusal([] { builtin_dataset("iris", TaskKind::kRegress); }),
                 "iris: the class \"setosa\" is no number to predict; for numbers name other "
                 "data, for classes leave --task regress out"));
  CHECK(builtin_dataset("digits", TaskKind::kRegress).targets[1] == 1.0);
}

TEST_CASE("targets: nobody who scores a model is told how to train one") {
  TableSchema schema = *parse("a,y\n1,2\n2,3\n", as(TaskKind::kRegress)).schema;
  CsvOptions options = as(TaskKind::kRegress);
  options.schema = &schema;
  CHECK(
      refused("a,y\n1,2\n2,many\n", options) ==
      "t.csv, line 3: the label \"many\" is no number to predict; mend or remove the row, or name "
      "another column by --label");
  const std::string x = npy_array<double>("<f8", "(2, 1)", {1, 2});
  const std::string texts = npy_texts("<U4", "(2,)", {U"1.5", U"2"});
  const std::string halves = npy_array<double>("<f8", "(2,)", {1.5, 2});
  const std::array words{NpyPair{x, texts, "x.npy", "y.npy"}};
  CHECK(contains(refusal([&] { parse_npy_pairs(words, "arrays", &schema, TaskKind::kRegress); }),
                 "if they are numbers, else another array, as the model predicts numbers"));
  schema.class_names = {"1", "2"};
  const std::array numbers{NpyPair{x, halves, "x.npy", "y.npy"}};
  CHECK(refusal([&] { parse_npy_pairs(numbers, "arrays", &schema); }) ==
        "y.npy: the label of row 0 is 1.5, integers below 2^53 expected; save labels of the known "
        "classes");
}

TEST_CASE("targets: rows without a label are left out like others") {
  CsvOptions options = as(TaskKind::kRegress);
  options.missing = MissingCells::kDrop;
  const Dataset data = parse("a,y\n1,2\n2,\n3,4.5\n", options);
  CHECK(data.targets == std::vector<double>{2.0, 4.5});
  CHECK(data.lines == std::vector<std::int64_t>{2, 4});
}

TEST_CASE("targets: the scale is that of the training rows, and leads back") {
  Dataset data = builtin_dataset("diabetes");
  const Split split = fixed_split(data);
  const TargetScale scale = TargetScale::fit(data, split.train);
  double sum = 0.0, squares = 0.0;
  const auto n = static_cast<double>(split.train.size());
  for (const std::int32_t row : split.train) sum += data.targets[static_cast<std::size_t>(row)];
  for (const std::int32_t row : split.train) {
    squares += std::pow(data.targets[static_cast<std::size_t>(row)] - sum / n, 2);
  }
  CHECK(scale.mean == doctest::Approx(sum / n).epsilon(1e-14));
  CHECK(scale.deviation == doctest::Approx(std::sqrt(squares / n)).epsilon(1e-14));
  for (const double target : data.targets) {
    const float standardised = scale.standardised(target);
    // fp32 rounds the standardised target by 2^-24 of its size; doubles add next to nothing.
    const double bound = scale.deviation * std::abs(standardised) * 0x1p-24 + 1e-12;
    CHECK(std::abs(scale.in_units(standardised) - target) <= bound);
  }
  data.targets.assign(data.targets.size(), 7.5);
  CHECK(contains(refusal([&] { TargetScale::fit(data, split.train); }),
                 "the targets of the 354 training rows are all 7.5"));
  for (double& target : data.targets) target = 1e-300;
  data.targets[static_cast<std::size_t>(split.train[0])] = 3e-300;
  CHECK(contains(refusal([&] { TargetScale::fit(data, split.train); }),
                 "the targets of the 354 training rows differ by 2e-300 at most, so little that "
                 "the square is 0 in double precision"));
  CHECK(TargetScale::fit(builtin_dataset("iris"), split.train) == TargetScale{});
}

TEST_CASE("targets: batches carry them standardised, and parts of batches their own") {
  const Dataset data = builtin_dataset("diabetes");
  std::vector<std::int32_t> rows(10);
  std::iota(rows.begin(), rows.end(), 3);
  const TargetScale scale{100.0, 50.0};
  Loader loader(data, rows, Standardizer::fit(data, rows), 10, 0, RowOrder::kAsGiven, {}, scale);
  const Batch batch = loader.next();
  CHECK(batch.labels.empty());
  REQUIRE(batch.targets.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) {
    CHECK(batch.targets[i] == scale.standardised(data.targets[i + 3]));
  }
  const Batch part = batch.part(4, 3);
  CHECK(part.targets.data() == batch.targets.data() + 4);
  CHECK(part.targets.size() == 3);
  CHECK(part.x.data == batch.x.row(4));
  CHECK(part.rows() == 3);
  CHECK(part.first == 4);
  CHECK(part.whole == 10);
}

TEST_CASE("targets: splits and folds are partitions without strata") {
  const Dataset data = builtin_dataset("diabetes");
  const Split fixed = fixed_split(data);
  CHECK(fixed.test.size() == 88);  // 20 % of 442
  CHECK(fixed.train.size() == 354);
  CHECK(carve_validation(fixed, data, 0.1).val.size() == 35);
  std::vector<int> times(442, 0);
  for (int fold = 0; fold < 5; ++fold) {
    const Split split = fold_split(data, 5, fold, 1);
    CHECK((split.test.size() == 88 || split.test.size() == 89));
    for (const std::int32_t row : split.test) ++times[static_cast<std::size_t>(row)];
  }
  CHECK(std::count(times.begin(), times.end(), 1) == 442);
  CHECK(contains(refusal([&] { fold_split(data, 443, 0, 1); }),
                 "diabetes has only 442 rows; use 442 folds at most (--folds 442)"));
}

}  // namespace tritgrad::test::test_targets
