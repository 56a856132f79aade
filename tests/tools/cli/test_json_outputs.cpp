// JSON that commands print has the keys that FORMATS.md lists, and no others. Those of train are
// in test_cli.cpp, those of bench in test_bench.cpp.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/support/json_keys.h"
#include "tests/support/program.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_json_outputs {
namespace {

using Json = nlohmann::json;
using Keys = std::set<std::string>;

Json printed(const std::string& command) {
  const Result result = run(command + " --json -");
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out);
}

const Keys kBytes{"weights", "scales", "residual", "moments", "gradients", "total"};
const Keys kInspect{"model",          "recipe",
                    "parameters",     "gradient_policy",
                    "forecast_bytes", "gradient_format",
                    "tensors",        "transient_gradient_bytes",
                    "live_bytes",     "bytes_per_parameter"};

}  // namespace

TEST_CASE("json outputs: eval") {
  const TempDir folder;
  const std::string file = folder / "m.safetensors";
  REQUIRE(run("train --data iris --epochs 1 --quiet --save " + file).exit_code == 0);
  CHECK(keys_of(printed("eval " + file)) ==
        Keys{"checkpoint", "data", "test_accuracy", "rows", "tested", "steps"});
}

TEST_CASE("json outputs: eval of regression") {
  const TempDir folder;
  const std::string file = folder / "m.safetensors";
  REQUIRE(run("train --data diabetes --epochs 1 --quiet --save " + file).exit_code == 0);
  CHECK(keys_of(printed("eval " + file)) ==
        Keys{"checkpoint", "data", "test_rmse", "test_mae", "test_r2", "rows", "tested", "steps"});
}

TEST_CASE("json outputs: a comparison names its score by the metric") {
  const TempDir folder;
  const auto check_keys = [&](const std::string& data, const std::string& key,
                              const std::string& score) {
    const Json json = printed("compare --recipes master --seeds 1 --epochs 1 --data " + data +
                              " --cache " + folder.path().string())["comparisons"];
    REQUIRE(json.size() == 1);
    Keys expected{"data", "dataset", "model", "command", "seconds", "baseline", "recipes", "runs"};
    expected.insert(key);
    CHECK(keys_of(json[0]) == expected);
    CHECK(json[0][key] == score);
    CHECK(json[0]["recipes"][0].contains(key + "_mean"));
  };
  check_keys("iris", "accuracy", "test accuracy");
  check_keys("diabetes", "rmse", "test RMSE");
}

TEST_CASE("json outputs: inspect") {
  const std::string command = "inspect --model mlp:4-8-2 --recipe votes";
  const Json json = printed(command + " --live");
  CHECK(keys_of(json) == kInspect);
  for (const char* bytes : {"forecast_bytes", "live_bytes", "bytes_per_parameter"}) {
    CHECK(keys_of(json[bytes]) == kBytes);
  }
  for (const Json& tensor : json["tensors"]) {
    CHECK(keys_of(tensor) == Keys{"name", "role", "rows", "cols", "format", "rule", "bytes"});
    CHECK(keys_of(tensor["bytes"]) == kBytes);
  }
  CHECK(keys_of(printed(command + " --dp votes --ranks 2")["traffic"]) ==
        Keys{"method", "ranks", "gradient_bytes", "warmup_gradient_bytes", "warmup_share",
             "statistics_bytes", "sums_bytes", "bytes_per_step", "last_step_bytes",
             "error_feedback_bytes"});
}

TEST_CASE("json outputs: traffic") {
  const Json json = printed("inspect --model mlp:4-8-2 --dp all --ranks 200");
  CHECK(keys_of(json) == Keys{"model", "links_gbit", "methods"});
  int impossible = 0;
  for (const Json& method : json["methods"]) {
    if (method.contains("most_micro_batches")) {
      ++impossible;
      CHECK(keys_of(method) ==
            Keys{"name", "method", "recipe", "ranks", "micro_batches", "most_micro_batches"});
      continue;
    }
    CHECK(keys_of(method) == Keys{"name", "method", "recipe", "ranks", "micro_batches",
                                  "gradient_bytes", "warmup_gradient_bytes", "warmup_share",
                                  "statistics_bytes", "sums_bytes", "bytes_per_step",
                                  "bytes_per_parameter", "fp16_ratio", "error_feedback_bytes",
                                  "seconds_on_links"});
  }
  CHECK(impossible > 0);
}

}  // namespace tritgrad::test::test_json_outputs
