#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/open_dataset.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_open_dataset {
namespace {

using namespace std::string_view_literals;

using Counts = std::vector<std::int64_t>;

TEST_CASE("built-in data: what known_datasets() declares is what opens") {
  for (const KnownDataset& known : known_datasets()) {
    if (!known.built_in) continue;
    CAPTURE(known.name);
    const Dataset data = open_dataset(known.name);
    CHECK(data.name == known.name);
    CHECK(data.rows == known.rows);
    CHECK(data.features == known.features);
    CHECK(data.classes() == known.classes);
    CHECK(data.published_test_rows == known.published_test_rows);
    const std::size_t labels = known.classes > 0 ? data.labels.size() : data.targets.size();
    CHECK(static_cast<std::int64_t>(labels) == known.rows);
    CHECK(static_cast<std::int64_t>(data.feature_names.size()) == known.features);
  }
}

TEST_CASE("built-in data: the published class counts") {
  CHECK(open_dataset("iris").class_counts() == Counts{50, 50, 50});
  CHECK(open_dataset("wine").class_counts() == Counts{59, 71, 48});
  const Dataset wdbc = open_dataset("wdbc");
  CHECK(wdbc.class_names == std::vector<std::string>{"malignant", "benign"});
  CHECK(wdbc.class_counts() == Counts{212, 357});
  CHECK(open_dataset("digits").class_counts() ==
        Counts{178, 182, 177, 183, 181, 182, 181, 179, 174, 180});
}

TEST_CASE("built-in data: diabetes is to be predicted as a number") {
  const Dataset data = open_dataset("diabetes");
  CHECK(data.is_regression());
  CHECK(data.targets.front() == 151.0);
  CHECK(data.targets.back() == 57.0);
  // The sum and the sum of squares of the 442 targets, as scikit-learn's load_diabetes() has them.
  double sum = 0.0, squares = 0.0;
  for (const double target : data.targets) {
    sum += target;
    squares += target * target;
  }
  CHECK(sum == 67243.0);
  CHECK(squares == 12850921.0);
  CHECK(data.remarks.notes.empty());
}

TEST_CASE("built-in data: first and last values survive the embedding") {
  const Dataset iris = open_dataset("iris");
  float row[64];
  iris.gather(149, row);
  CHECK(std::vector<float>(row, row + 4) == std::vector<float>{5.9f, 3.0f, 5.1f, 1.8f});
  CHECK(iris.labels[149] == 2);
  CHECK(iris.feature_names[2] == "petal_length_cm");
  const Dataset wdbc = open_dataset("wdbc");
  wdbc.gather(0, row);
  CHECK(row[0] == 17.99f);
  CHECK(row[29] == 0.1189f);
  const Dataset digits = open_dataset("digits");
  CHECK(digits.image == ImageShape{8, 8, 1});
  const float* values = digits.values.as<float>();
  const auto [low, high] = std::minmax_element(values, values + digits.rows * digits.features);
  CHECK(*low == 0.0f);
  CHECK(*high == 16.0f);
}

TEST_CASE("open_dataset: a folder is named after itself, however its path ends") {
  const TempDir work;
  for (const std::string part : {"mine/train", "mine/t10k"}) {
    work.write(part + "-images-idx3-ubyte", "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x01\x02\x03"sv);
    work.write(part + "-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\x02\0\x01"sv);
  }
  const std::string path = (work.path() / "mine").string();
  for (const std::string& spec : {path, path + "/", path + "/.", path + "//", path + "/../mine/"}) {
    CAPTURE(spec);
    CHECK(open_dataset(spec).name == "mine");
  }
}

TEST_CASE("open_dataset: images of IDX and CIFAR-10 files have classes and no numbers to predict") {
  const TempDir work;
  for (const std::string part : {"cache/mnist/train", "cache/mnist/t10k"}) {
    work.write(part + "-images-idx3-ubyte", "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x01\x02\x03"sv);
    work.write(part + "-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\x02\0\x01"sv);
  }
  std::string records(2 * 3073, '\1');  // a class and 32 x 32 x 3 pixels each
  records[0] = '\0';
  for (const std::string part : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                                 "data_batch_5", "test_batch"}) {
    work.write("cifar/" + part + ".bin", records);
  }
  DataOptions options;
  options.cache_folder = (work.path() / "cache").string();
  const std::string idx = (work.path() / "cache" / "mnist").string();
  const std::string cifar = (work.path() / "cifar").string();
  for (const std::string& spec : {std::string("mnist"), idx, cifar}) {
    CAPTURE(spec);
    for (const TaskKind task : {TaskKind::kAuto, TaskKind::kClassify}) {
      options.csv.task = task;
      CHECK(open_dataset(spec, options).classes() > 1);
    }
    options.csv.task = TaskKind::kRegress;
    CHECK(refusal([&] { open_dataset(spec, options); }) ==
          concat("'", spec == cifar ? "cifar" : "mnist",
                 "' holds images of classes and no number to predict; for numbers name other data, "
                 "for classes leave --task regress out"));
  }
}

TEST_CASE("open_dataset: a name wins over a file, and every spec tells what it reads") {
  using Kind = DataSource::Kind;
  using Paths = std::vector<std::string>;
  const TempDir work;
  const std::string folder = work.path().string();
  const auto expect = [&](const std::string& spec, Kind kind, const Paths& paths) {
    CAPTURE(spec);
    const DataSource source = data_source(spec, "cache");
    CHECK(source.kind == kind);
    CHECK(source.paths == paths);
  };
  expect("iris", Kind::kBuiltIn, {});
  expect("letter", Kind::kFetched, {"cache/letter"});
  expect("./iris", Kind::kCsv, {"./iris"});
  expect("a.npy,b.npy", Kind::kNpyPair, {"a.npy", "b.npy"});
  expect("a.npy,", Kind::kNpyPair, {"a.npy", ""});
  expect(folder, Kind::kFolder, {folder});
  expect(folder + "/none.csv", Kind::kCsv, {folder + "/none.csv"});
}

TEST_CASE("open_dataset: unknown and unfetched names say what to do") {
  CHECK(contains(refusal([] { open_dataset("irsi"); }), "did you mean 'iris'?"));
  CHECK(contains(refusal([] { open_dataset("nothing-like-it"); }), "known: iris, wdbc"));
  const TempDir dir;
  DataOptions options;
  options.cache_folder = dir.path().string();
  CHECK(contains(refusal([&] { open_dataset("mnist", options); }), "tritgrad data fetch mnist"));
  const std::string neither = refusal([&] { open_dataset(dir.path().string()); });
  CHECK(contains(neither, "four IDX files (train-images-idx3-ubyte"));
  CHECK(contains(neither, "CIFAR-10's six (data_batch_1.bin"));
  CHECK(contains(refusal([&] { open_dataset(dir.write("x.npy", "")); }), "x.npy,y.npy"));
  const std::string pair = dir.path().string() + "/x.npy," + dir.write("y.npy", "");
  CHECK(contains(refusal([&] { open_dataset(pair); }), "x.npy: this is not a .npy file"));
}

TEST_CASE("open_dataset: a fetched set, a folder and a table") {
  using std::string_literals::operator""s;
  const TempDir dir;
  for (const char* part : {"train", "t10k"}) {
    const std::string stem = "mnist/" + std::string(part);
    dir.write(stem + "-images-idx3-ubyte", "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x01\x05\x06"s);
    dir.write(stem + "-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\x02\0\x01"s);
  }
  DataOptions options;
  options.cache_folder = dir.path().string();
  for (const std::string& spec :
       {"mnist"s, dir.path().string() + "/mnist", dir.path().string() + "/mnist/"}) {
    CAPTURE(spec);
    const Dataset data = open_dataset(spec, options);
    CHECK(data.rows == 4);
    CHECK(data.published_test_rows == 2);
  }
  CHECK(open_dataset(dir.path().string() + "/mnist").name == "mnist");
  options.csv.label = "kind";
  CHECK(open_dataset(dir.write("t.csv", "kind,a\nx,1\ny,2\n"), options).rows == 2);
}

TEST_CASE("open_dataset: a fetched table has the published test set at its end") {
  struct Table {
    std::string name;
    int rows, test_rows;
  };
  for (const Table& table : {Table{"letter", 20000, 4000}, Table{"shuttle", 58000, 14500}}) {
    const std::string& name = table.name;
    CAPTURE(name);
    const TempDir dir;
    std::string text = "a,b,kind\n";
    for (int row = 1; row < table.rows; ++row) text += row % 2 == 0 ? "1,-2,B\n" : "3,4,A\n";
    DataOptions options;
    options.cache_folder = dir.path().string();
    options.csv.label = "a";  // is for files of the user
    CHECK(contains(refusal([&] { open_dataset(name, options); }), "data fetch " + name));
    const std::string file = name + "/" + name + ".csv";
    const std::string path = dir.write(file, text);
    CHECK(contains(refusal([&] { open_dataset(name, options); }),
                   concat(path, ": ", table.rows - 1, " rows found, ", table.rows,
                          " expected; run: tritgrad data fetch ", name)));
    dir.write(file, text + "5,6,Z\n");
    const Dataset data = open_dataset(name, options);
    CHECK(data.name == name);
    CHECK(data.class_names == std::vector<std::string>{"A", "B", "Z"});
    CHECK(data.labels.back() == 2);
    CHECK(data.published_test_rows == table.test_rows);
  }
}

}  // namespace
}  // namespace tritgrad::test::test_open_dataset
