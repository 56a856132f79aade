// Regression from C has the bits of the library's.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/training/train.h"
#include "tests/support/c_handles.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_c_targets {
namespace {

using Json = nlohmann::json;

constexpr const char* kSpec = R"({"model": "mlp:16", "recipe": "latent8", "epochs": 20})";

}  // namespace

TEST_CASE("c targets: arrays with targets train and predict as a table does") {
  const CArrays diabetes("diabetes");
  const Dataset& dataset = diabetes.dataset;
  REQUIRE(dataset.is_regression());
  TrainOptions options;
  options.data = "diabetes";
  options.model = "mlp:16";
  options.recipe = "latent8";
  options.epochs = 20;
  const RunResult expected = train(dataset, options);
  const DataHandle data{tg_data_from_targets(diabetes.values.data(), TG_FLOAT64, dataset.rows,
                                             dataset.features, dataset.targets.data(), nullptr)};
  REQUIRE(data.handle != nullptr);
  CHECK(Json::parse(tg_data_describe(data.handle)).at("task") == "regress");
  const RunHandle run{tg_run_new(data.handle, kSpec)};
  REQUIRE(tg_run_all(run.handle) == TG_OK);
  CHECK(Json::parse(tg_run_finish(run.handle)).at("weights_sha256") == expected.weights_sha256);

  const ModelHandle model{tg_run_model(run.handle)};
  const Json about = Json::parse(tg_model_describe(model.handle));
  CHECK(about.at("task") == "regress");
  CHECK(about.at("classes").empty());
  std::vector<double> predicted(static_cast<std::size_t>(dataset.rows));
  REQUIRE(tg_model_predict(model.handle, diabetes.values.data(), TG_FLOAT64, dataset.rows,
                           dataset.features, nullptr, nullptr, predicted.data()) == TG_OK);
  double errors = 0.0, deviations = 0.0, mean = 0.0;
  for (const double target : dataset.targets) mean += target / static_cast<double>(dataset.rows);
  for (std::size_t row = 0; row < predicted.size(); ++row) {
    errors += std::pow(dataset.targets[row] - predicted[row], 2);
    deviations += std::pow(dataset.targets[row] - mean, 2);
  }
  CHECK(errors < 0.7 * deviations);  // numbers in other units would be far off
}

TEST_CASE("c targets: what is of classes alone is refused") {
  const std::vector<float> values{0.0f, 1.0f, 2.0f, 4.0f};
  const std::vector<double> targets{0.5, 1.5, 2.5, 8.0};
  const auto open = [&](const double* y, const char* options) {
    return tg_data_from_targets(values.data(), TG_FLOAT32, 4, 1, y, options);
  };
  check_c_error(open(nullptr, nullptr), "targets: NULL found");
  check_c_error(open(targets.data(), R"({"class_names": ["a"]})"), "targets are of no classes");
  const std::vector<double> broken{0.5, NAN, 2.5, 8.0};
  check_c_error(open(broken.data(), nullptr), "the label of row 1 is nan");
  const DataHandle data{open(targets.data(), R"({"borrow": true})")};
  REQUIRE(data.handle != nullptr);
  const RunHandle run{
      tg_run_new(data.handle, R"({"model": "mlp:3", "epochs": 1, "all_rows": true})")};
  const ModelHandle model{tg_run_model(run.handle)};
  REQUIRE(model.handle != nullptr);
  std::vector<std::int64_t> classes(4);
  CHECK(tg_model_predict(model.handle, values.data(), TG_FLOAT32, 4, 1, classes.data(), nullptr,
                         nullptr) == TG_INVALID);
  CHECK(std::string(tg_error()).find("has no classes") != std::string::npos);
}

}  // namespace tritgrad::test::test_c_targets
