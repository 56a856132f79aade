// What a program in C is told of rows that a model cannot predict: what these rows lack.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/c_handles.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_c_predictions {
namespace {

tg_model* model_of(const std::string& data, const char* spec) {
  const DataHandle opened{tg_data_open(("{\"data\": \"" + data + "\"}").c_str())};
  const RunHandle run{tg_run_new(opened.handle, spec)};
  return tg_run_model(run.handle);
}

// The sentence by which a row of these numbers is refused.
std::string refusal(tg_model* model, const std::vector<float>& row) {
  std::vector<double> outputs(16);
  const tg_status status = tg_model_predict(model, row.data(), TG_FLOAT32, 1, std::ssize(row),
                                            nullptr, nullptr, outputs.data());
  CHECK(status == TG_INVALID);
  return tg_error();
}

bool contains(const std::string& text, const char* part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("c predictions: rows of other features are told the model's inputs") {
  const TempDir folder;
  std::string table = "colour,size,kind\n";
  for (int i = 0; i < 30; ++i) {
    table += std::string(i % 3 == 0 ? "red" : "blue") + "," + std::to_string(i) +
             (i % 2 == 0 ? ",a\n" : ",b\n");
  }
  const std::string path = folder.write("t.csv", table);
  const ModelHandle words{model_of(path, R"({"model": "mlp:3", "epochs": 1})")};
  REQUIRE(words.handle != nullptr);
  CHECK(contains(refusal(words.handle, {1.0f, 2.0f}),
                 "2 found, the model has 3 inputs (colour=blue, colour=red, size); give a number"));
  const ModelHandle images{model_of("digits", R"({"model": "mlp:3", "epochs": 1})")};
  CHECK(contains(refusal(images.handle, {1.0f}), "64 inputs (images of 8 x 8 x 1)"));
}

TEST_CASE("c predictions: outputs that are no numbers are refused with their row") {
  const ModelHandle model{
      model_of("iris", R"({"model": "mlp:3:norm=none", "epochs": 1, "recipe": "fp32"})")};
  REQUIRE(model.handle != nullptr);
  const std::vector<float> rows{5.0f, 3.0f, 1.0f, 0.2f, 3e38f, 3e38f, -3e38f, 3e38f};
  std::int64_t classes[2] = {-1, -1};
  CHECK(tg_model_predict(model.handle, rows.data(), TG_FLOAT32, 2, 4, classes, nullptr, nullptr) ==
        TG_INVALID);
  CHECK(contains(tg_error(), "the model's outputs of row 1 are not finite; look for a number"));
  CHECK(classes[0] == -1);  // nothing is written
  CHECK(tg_model_predict(model.handle, rows.data(), TG_FLOAT32, 1, 4, classes, nullptr, nullptr) ==
        TG_OK);
}

}  // namespace tritgrad::test::test_c_predictions
