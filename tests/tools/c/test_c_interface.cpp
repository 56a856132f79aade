// The C interface: the same bits as the library and the command line, and sentences for every
// mistake.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/data/npy_writer.h"
#include "models/training/train.h"
#include "tests/support/c_handles.h"
#include "tests/support/program.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_c_interface {
namespace {

using Json = nlohmann::json;

std::string hash_of(const char* result) {
  REQUIRE(result != nullptr);
  return Json::parse(result).at("weights_sha256");
}

}  // namespace

TEST_CASE("c interface: a run has the bits of the library's, whole, by epochs and by steps") {
  for (const std::string recipe : {"votes", "latent8", "eco", "master", "fp32", "shared4"}) {
    CAPTURE(recipe);
    TrainOptions options;
    options.data = "wdbc";
    options.model = "mlp:24";
    options.recipe = recipe;
    options.epochs = 3;
    options.seed = 7;
    const std::string expected = train(builtin_dataset("wdbc"), options).weights_sha256;
    const std::string spec =
        R"({"model": "mlp:24", "epochs": 3, "seed": 7, "recipe": ")" + recipe + "\"}";
    const DataHandle data{tg_data_open(R"({"data": "wdbc"})")};
    const RunHandle whole{tg_run_new(data.handle, spec.c_str())};
    CHECK(tg_run_all(whole.handle) == TG_OK);
    CHECK(tg_run_is_over(whole.handle) == 1);
    CHECK(hash_of(tg_run_finish(whole.handle)) == expected);
    const RunHandle steps{tg_run_new(data.handle, spec.c_str())};
    CHECK(tg_run_step(steps.handle) == TG_OK);
    CHECK(tg_run_epoch(steps.handle) == TG_OK);  // the rest of the first
    CHECK(tg_run_epoch(steps.handle) == TG_OK);
    CHECK(tg_run_is_over(steps.handle) == 0);
    CHECK(tg_run_epoch(steps.handle) == TG_OK);
    CHECK(tg_run_is_over(steps.handle) == 1);
    CHECK(hash_of(tg_run_finish(steps.handle)) == expected);
  }
}

TEST_CASE("c interface: arrays train as the command line trains .npy files of them") {
  const CArrays digits("digits");
  const TempDir folder;
  const DataHandle data{digits.open(R"({"name": "x"})")};
  REQUIRE(data.handle != nullptr);
  const RunHandle run{tg_run_new(data.handle, R"({"model": "mlp:16", "epochs": 2})")};
  REQUIRE(tg_run_all(run.handle) == TG_OK);
  const std::string saved = folder / "c.safetensors";
  REQUIRE(tg_run_save(run.handle, saved.c_str()) == TG_OK);
  const Json result = Json::parse(tg_run_finish(run.handle));
  // The command line tests the model, and so did the run.
  folder.write("x.npy", write_npy({digits.dataset.rows, digits.dataset.features}, digits.values));
  folder.write("y.npy", write_npy({digits.dataset.rows}, digits.labels));
  const std::string pair = (folder / "x.npy").string() + "," + (folder / "y.npy").string();
  const Result evaluated = tritgrad::test::run("eval " + saved + " --json - --data " + pair);
  REQUIRE(evaluated.exit_code == 0);
  CHECK(Json::parse(evaluated.out)["test_accuracy"] == result["test_accuracy"]);
  const Result trained =
      tritgrad::test::run("train --quiet --json - --model mlp:16 --epochs 2 --data " + pair);
  REQUIRE(trained.exit_code == 0);
  CHECK(Json::parse(trained.out)["weights_sha256"] == result["weights_sha256"]);
}

TEST_CASE("c interface: predictions of a saved model, of all rows at once and of each alone") {
  const CArrays iris("iris");
  const TempDir folder;
  const DataHandle data{iris.open(R"({"class_names": ["setosa", "versicolor", "virginica"]})")};
  REQUIRE(data.handle != nullptr);
  const RunHandle run{tg_run_new(
      data.handle, R"({"model": "mlp:8", "recipe": "latent8", "epochs": 40, "all_rows": true})")};
  REQUIRE(tg_run_all(run.handle) == TG_OK);
  const std::string path = folder / "m.safetensors";
  REQUIRE(tg_run_save(run.handle, path.c_str()) == TG_OK);
  const std::string bytes = read_text(path);
  for (const bool from_file : {true, false}) {
    const ModelHandle model{from_file ? tg_model_open(path.c_str())
                                      : tg_model_from_bytes(bytes.data(), bytes.size())};
    REQUIRE(model.handle != nullptr);
    const Json about = Json::parse(tg_model_describe(model.handle));
    CHECK(about["classes"] == Json({"setosa", "versicolor", "virginica"}));
    CHECK(about["inputs"] == 4);
    const auto rows = static_cast<std::size_t>(iris.dataset.rows);
    std::vector<std::int64_t> classes(rows);
    std::vector<float> probabilities(3 * rows);
    std::vector<double> logits(3 * rows);
    REQUIRE(tg_model_predict(model.handle, iris.values.data(), TG_FLOAT64, iris.dataset.rows, 4,
                             classes.data(), probabilities.data(), logits.data()) == TG_OK);
    std::int64_t right = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      right += classes[row] == iris.labels[row] ? 1 : 0;
      const float* p = probabilities.data() + 3 * row;
      // Each of the three is rounded to 24 bits.
      CHECK(std::abs(p[0] + p[1] + p[2] - 1.0f) <= 3 * 0x1p-24f);
      std::int64_t alone = -1;
      double alone_logits[3];
      REQUIRE(tg_model_predict(model.handle, iris.values.data() + 4 * row, TG_FLOAT64, 1, 4, &alone,
                               nullptr, alone_logits) == TG_OK);
      CHECK(alone == classes[row]);
      CHECK(std::memcmp(alone_logits, logits.data() + 3 * row, sizeof alone_logits) == 0);
    }
    CHECK(right > 130);
  }
}

TEST_CASE("c interface: an observer ends a run, which goes on to the same bits") {
  struct Count {
    int steps = 0;
    double loss = 0.0;
  };
  const auto stop_at_five = [](const tg_progress* progress, void* context) {
    Count& count = *static_cast<Count*>(context);
    count.steps = static_cast<int>(progress->step);
    count.loss = progress->loss;
    return progress->step == 5 ? 1 : 0;
  };
  const DataHandle data{tg_data_open(R"({"data": "wine"})")};
  const char* spec = R"({"model": "mlp:8", "epochs": 4, "seed": 3})";
  const RunHandle run{tg_run_new(data.handle, spec)}, other{tg_run_new(data.handle, spec)};
  Count count;
  REQUIRE(tg_run_observe(run.handle, stop_at_five, &count) == TG_OK);
  CHECK(tg_run_all(run.handle) == TG_INTERRUPTED);
  CHECK(count.steps == 5);
  CHECK(count.loss > 0.0);
  CHECK(std::string(tg_error()).find("interrupted after step 5 of") != std::string::npos);
  CHECK(tg_run_all(run.handle) == TG_OK);
  CHECK(tg_run_all(other.handle) == TG_OK);
  CHECK(hash_of(tg_run_finish(run.handle)) == hash_of(tg_run_finish(other.handle)));
}

TEST_CASE("c interface: a run is resumed from a checkpoint") {
  const TempDir folder;
  const DataHandle data{tg_data_open(R"({"data": "wine"})")};
  const std::string path = folder / "m.safetensors";
  const RunHandle first{tg_run_new(data.handle, R"({"model": "mlp:8", "epochs": 4})")};
  REQUIRE(tg_run_epoch(first.handle) == TG_OK);
  REQUIRE(tg_run_save(first.handle, path.c_str()) == TG_OK);
  REQUIRE(tg_run_all(first.handle) == TG_OK);
  const std::string spec = R"({"model": "mlp:8", "epochs": 4, "resume": ")" + path + "\"}";
  const RunHandle second{tg_run_new(data.handle, spec.c_str())};
  REQUIRE(second.handle != nullptr);
  REQUIRE(tg_run_all(second.handle) == TG_OK);
  CHECK(hash_of(tg_run_finish(second.handle)) == hash_of(tg_run_finish(first.handle)));
  CHECK(tg_run_step(first.handle) == TG_INVALID);
  CHECK(std::string(tg_error()).find("finished") != std::string::npos);
}

TEST_CASE("c interface: what does not fit is refused with a sentence") {
  CHECK(tg_abi_version() == TG_ABI_VERSION);
  check_c_error(tg_data_open(nullptr), "spec: NULL found");
  check_c_error(tg_data_open("iris"), "no JSON object");
  check_c_error(tg_data_open(R"({"dat": "iris"})"), "unknown key 'dat'; did you mean 'data'?");
  check_c_error(tg_data_open(R"({"data": "irs"})"), "irs", TG_NOT_FOUND);
  const DataHandle data{tg_data_open(R"({"data": "iris"})")};
  check_c_error(tg_run_new(data.handle, R"({"epochs": 0})"), "whole number from 1 to 1e+06");
  check_c_error(tg_run_new(data.handle, R"({"epochs": -1})"), "'epochs' is -1");
  check_c_error(tg_run_new(data.handle, R"({"epochs": 1.5})"), "'epochs' is 1.5");
  check_c_error(tg_run_new(data.handle, R"({"recipe": "vote"})"), "did you mean 'votes'?");
  check_c_error(tg_run_new(data.handle, R"({"modle": "mlp:4"})"), "did you mean 'model'?");
  check_c_error(tg_run_new(data.handle, R"({"set": "x"})"), "a list of texts expected");
  check_c_error(tg_run_new(data.handle, R"({"folds": 3})"), "'folds' is of several runs");
  check_c_error(tg_run_new(nullptr, "{}"), "data: NULL found");
  CHECK(tg_run_step(nullptr) == TG_INVALID);
  CHECK(tg_run_is_over(nullptr) == 0);
  check_c_error(tg_model_open("/none.safetensors"), "/none.safetensors", TG_NOT_FOUND);
  check_c_error(tg_model_from_bytes("xx", 2), "bytes");
  const std::vector<float> values{0.0f, 1.0f, 2.0f, NAN};
  const std::vector<std::int64_t> labels{0, 1, 0, 1};
  const auto open = [&](const std::int64_t* y, std::int64_t rows, const char* options) {
    return tg_data_from_arrays(values.data(), TG_FLOAT32, rows, 1, y, TG_INT64, options);
  };
  check_c_error(open(labels.data(), 4, nullptr), "row 3, column 0 is nan");
  check_c_error(open(nullptr, 3, nullptr), "labels: NULL found");
  check_c_error(open(labels.data(), -1, nullptr), "rows -1");
  check_c_error(open(labels.data(), 3, R"({"class_names": ["a"]})"), "1 names found");
  check_c_error(open(labels.data(), 3, R"({"image": [2, 2, 1]})"), "[height, width, channels]");
  check_c_error(open(labels.data(), 3, R"({"nam": "x"})"), "did you mean 'name'?");
  tg_data_close(nullptr);
  tg_run_close(nullptr);
  tg_model_close(nullptr);
}

}  // namespace tritgrad::test::test_c_interface
