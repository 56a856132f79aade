// Exports of models of arrays, which no file holds: the rows on which they are checked.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/c_handles.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_c_exports {
namespace {

using Json = nlohmann::json;

constexpr const char* kMine =
    R"({"name": "mine", "class_names": ["setosa", "versicolor", "virginica"]})";

tg_model* trained(tg_run* run) {
  REQUIRE(tg_run_all(run) == TG_OK);
  return tg_run_model(run);
}

// A run on the rows of iris as arrays, and the model that it makes.
struct IrisRun {
  explicit IrisRun(const char* spec) : run(tg_run_new(data.handle, spec)) {}
  const CArrays iris{"iris"};
  const DataHandle data{iris.open(kMine)};
  const RunHandle run;
  const ModelHandle model{trained(run.handle)};
};

Json exported(tg_model* model, const std::string& path) {
  const char* report = tg_model_export(model, path.c_str(), nullptr);
  CAPTURE(std::string(tg_error()));
  REQUIRE(report != nullptr);
  return Json::parse(report);
}

// Targets y of rows [rows x 1] that a line fits, with a little of a wave in it.
struct Line {
  std::vector<float> values;
  std::vector<double> targets;

  explicit Line(int rows) {
    for (int i = 0; i < rows; ++i) {
      values.push_back(static_cast<float>(i));
      targets.push_back(3.0 * i + std::sin(i));
    }
  }
  std::int64_t rows() const { return std::ssize(values); }
  tg_data* open() const {
    return tg_data_from_targets(values.data(), TG_FLOAT32, rows(), 1, targets.data(),
                                R"({"name": "line"})");
  }
};

constexpr const char* kShort = R"({"model": "mlp:4", "epochs": 1})";

}  // namespace

TEST_CASE("c exports: a run's model of arrays is checked on the rows that the run held back") {
  const TempDir folder;
  const std::string path = folder / "m.h";
  const IrisRun tested(R"({"model": "mlp:8", "recipe": "latent8", "epochs": 30})");
  const Json report = exported(tested.model.handle, path);
  CHECK(report.at("rows") == 30);
  CHECK(report.at("differing_rows") == 0);
  const double accuracy = Json::parse(tg_run_finish(tested.run.handle)).at("test_accuracy");
  CHECK(report.at("accuracy_after") == accuracy);
  CHECK(read_text(path).find("on 30 rows of mine (test rows)") != std::string::npos);
  CHECK(read_text(path).find("trained on mine") != std::string::npos);
  const IrisRun validated(R"({"model": "mlp:8", "epochs": 1, "all_rows": true, "val": 0.2})");
  CHECK(exported(validated.model.handle, path).at("data") == "mine (validation rows)");
  const IrisRun whole(R"({"model": "mlp:8", "epochs": 1, "all_rows": true})");
  const Json all = exported(whole.model.handle, path);
  CHECK(all.at("data") == "mine (rows of the training)");
  CHECK(all.at("rows") == 150);
}

TEST_CASE("c exports: options of data are for data that are named") {
  const IrisRun iris(kShort);
  const TempDir folder;
  const std::string path = folder / "m.h";
  check_c_error(tg_model_export(iris.model.handle, path.c_str(), R"({"label": "kind"})"),
                "options: 'label' is of data that are read, but the model has rows");
  const char* options = R"({"data": "iris", "trits": "2bit"})";
  CHECK(tg_model_export(iris.model.handle, path.c_str(), options) != nullptr);
}

TEST_CASE("c exports: of many rows some are enough") {
  const Line line(6000);
  const DataHandle data{line.open()};
  const RunHandle run{tg_run_new(data.handle, kShort)};
  const ModelHandle model{tg_run_model(run.handle)};
  const TempDir folder;
  const Json report = exported(model.handle, folder / "m.h");
  CHECK(report.at("rows") == 600);  // each second one
  CHECK(report.at("data") == "line (some of 1200 test rows)");
}

TEST_CASE("c exports: a run's model of targets tells the RMSE of the run") {
  const Line line(100);
  const DataHandle data{line.open()};
  const RunHandle run{tg_run_new(data.handle, kShort)};
  const ModelHandle model{trained(run.handle)};
  const TempDir folder;
  const Json report = exported(model.handle, folder / "m.h");
  CHECK(report.at("data") == "line (test rows)");
  const double expected = Json::parse(tg_run_finish(run.handle)).at("test_rmse");
  // A run's errors are of standardised targets in floats, within 2^-24 of each; the mean of 0 to
  // 298 lies less than 160 from all of them. Each error, and so their RMSE, is as near.
  CHECK(std::abs(report.at("rmse_before").get<double>() - expected) <= 160 * 0x1p-24);
}

TEST_CASE("c exports: a model that was opened has no rows before it is given some") {
  const IrisRun tested(R"({"model": "mlp:8", "recipe": "latent8", "epochs": 30})");
  std::size_t size = 0;
  const void* bytes = tg_model_bytes(tested.model.handle, &size);
  const ModelHandle model{tg_model_from_bytes(bytes, size)};
  const TempDir folder;
  const std::string path = folder / "iris.h";
  check_c_error(tg_model_export(model.handle, path.c_str(), nullptr), "tg_model_check_rows()",
                TG_NOT_FOUND);
  CHECK_FALSE(std::filesystem::exists(path));
  const CArrays& iris = tested.iris;
  const auto give = [&](const std::int64_t* classes, const double* targets) {
    return tg_model_check_rows(model.handle, iris.values.data(), TG_FLOAT64, iris.dataset.rows, 4,
                               classes, targets);
  };
  std::vector<std::int64_t> wrong = iris.labels;
  wrong[7] = 3;
  CHECK(give(wrong.data(), nullptr) == TG_INVALID);
  CHECK(std::string(tg_error()).find("row 7 is 3, a number from 0 to 2") != std::string::npos);
  CHECK(give(nullptr, iris.values.data()) == TG_INVALID);
  CHECK(std::string(tg_error()).find("predicts no numbers") != std::string::npos);
  REQUIRE(give(iris.labels.data(), nullptr) == TG_OK);
  const Json report = exported(model.handle, path);
  CHECK(report.at("rows") == 30);  // they are those of the run, of which the test rows count
  const double expected = Json::parse(tg_run_finish(tested.run.handle)).at("test_accuracy");
  CHECK(report.at("accuracy_after") == expected);
  CHECK(read_text(path).find("30 rows of rows that were given") != std::string::npos);
  REQUIRE(give(nullptr, nullptr) == TG_OK);
  CHECK(exported(model.handle, path).at("accuracy_after").is_null());
}

TEST_CASE("c exports: rows with targets tell an RMSE, and without none") {
  const Line line(40), other(9);
  const DataHandle data{line.open()};
  const RunHandle run{tg_run_new(data.handle, kShort)};
  const ModelHandle model{trained(run.handle)};
  const auto give = [&](const std::int64_t* classes, const double* targets) {
    return tg_model_check_rows(model.handle, other.values.data(), TG_FLOAT32, 9, 1, classes,
                               targets);
  };
  const std::vector<std::int64_t> classes(9);
  CHECK(give(classes.data(), nullptr) == TG_INVALID);
  CHECK(std::string(tg_error()).find("a model of regression has none") != std::string::npos);
  const TempDir folder;
  const std::string path = folder / "m.npz";
  REQUIRE(give(nullptr, nullptr) == TG_OK);
  CHECK(exported(model.handle, path).at("rmse_after").is_null());
  REQUIRE(give(nullptr, other.targets.data()) == TG_OK);
  const Json report = exported(model.handle, path);
  CHECK(report.at("rows") == 9);
  double predicted[9], squares = 0.0;
  REQUIRE(tg_model_predict(model.handle, other.values.data(), TG_FLOAT32, 9, 1, nullptr, nullptr,
                           predicted) == TG_OK);
  for (int i = 0; i < 9; ++i) squares += std::pow(predicted[i] - other.targets[i], 2);
  // Nine squares and a root in doubles, of predictions that are the same floats.
  CHECK(report.at("rmse_before").get<double>() ==
        doctest::Approx(std::sqrt(squares / 9)).epsilon(32 * 0x1p-52));
}

}  // namespace tritgrad::test::test_c_exports
