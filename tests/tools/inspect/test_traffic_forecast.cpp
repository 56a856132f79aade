// Forecasts of what data-parallel training sends, and the table made of them.
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/data/open_dataset.h"
#include "models/training/train.h"
#include "tests/support/program.h"
#include "tests/support/thread_ranks.h"
#include "tools/inspect/traffic_forecast.h"

namespace tritgrad::test::test_traffic_forecast {
namespace {

constexpr const char* kModel = "mlp:784-512-512-10:norm=none";

double sent(const TrafficWay& way, int ranks, int parts) {
  return static_cast<double>(forecast_traffic(way, kModel, ranks, parts).gradients);
}

}  // namespace

TEST_CASE("traffic: forecasts follow the formulas, up to what scales and whole bytes add") {
  const double weights = 784 * 512 + 512 * 512 + 512 * 10;
  const double biases = 512 + 512 + 10;
  const double scales = biases;  // one for each row
  for (const int ranks : {2, 4, 8, 16}) {
    const double f = (ranks - 1.0) / ranks;
    const auto expect = [&](const TrafficWay& way) -> double {
      if (way.name == "allreduce, fp32") return 8.0 * f * (weights + biases);
      if (way.name == "allreduce, bf16") return 4.0 * f * (weights + biases);
      if (way.spec.method == ParallelMethod::kApmsqueeze) {
        return ((1.0 - way.warmup) * 0.25 + way.warmup * 8.0) * f * (weights + biases);
      }
      const double ordered = 4.0 * (ranks - 1) * (biases + scales);
      if (way.name == "votes: majority") return f * weights * (1.0 / 8 + 1.0 / 5) + ordered;
      if (way.name == "votes: mean") {
        const double result = ranks <= 7 ? 4.0 : ranks <= 15 ? 5.0 : 6.0;
        return f * weights * (1.0 / 8 + result / 8) + ordered;
      }
      return 2.0625 * f * weights + 0.0625 * f * weights + ordered;  // int8: codes and scales
    };
    for (const TrafficWay& way : traffic_ways()) {
      CAPTURE(way.name);
      CAPTURE(ranks);
      // 6 tensors at most are cut into chunks of whole bytes of bits, each with a scale: less than
      // 8 elements of up to 4 bytes and 4 bytes of scale for each rank, twice.
      CHECK(std::abs(sent(way, ranks, ranks) - expect(way)) <= 6 * 2 * 36.0 * ranks);
    }
  }
  for (const TrafficWay& way : traffic_ways()) CHECK(sent(way, 1, 1) == 0.0);
}

TEST_CASE("traffic: the table has every number of ranks and every link") {
  const std::string table = traffic_table({kModel, {2, 8, 16}, 0, {1.0, 10.0}});
  for (const char* cell : {"  2  ", "  8  ", "  16  ", "1 Gbit/s", "10 Gbit/s"}) {
    CAPTURE(cell);
    CHECK(contains(table, cell));
  }
  const nlohmann::json json =
      nlohmann::json::parse(traffic_json({kModel, {2, 8}, 16, {1.0, 10.0}}));
  REQUIRE(json["methods"].size() == 2 * traffic_ways().size());
  for (const nlohmann::json& method : json["methods"]) {
    CHECK(method["micro_batches"] == 16);
    const double bytes = method["bytes_per_step"].get<double>();
    CHECK(method["seconds_on_links"][0].get<double>() == doctest::Approx(8e-9 * bytes));
    CHECK(method["seconds_on_links"][1].get<double>() == doctest::Approx(8e-10 * bytes));
  }
}

TEST_CASE("traffic: what a run sends is what was forecast, its warm-up included") {
  const Dataset iris = open_dataset("iris", {});
  run_ranks(2, [&](Communicator& ranks) {
    TrainOptions options;
    options.data = "iris";
    options.model = "mlp:8";
    options.recipe = "fp32";
    options.epochs = 5;
    options.batch = 50;
    options.micro_batches = 2;
    options.parallel.method = ParallelMethod::kApmsqueeze;
    options.ranks = &ranks;
    const Traffic traffic = *train(iris, options).traffic;
    if (ranks.rank() > 0) return;
    CHECK(traffic.warmup_steps == 3);  // of 15
    CHECK(traffic.bytes_per_step == traffic.forecast_per_step);
    CHECK(traffic.bytes_per_step > static_cast<double>(traffic.last_step_bytes));
    // The command that forecasts the whole run knows the share of its warm-up.
    const Result table = run("inspect --model mlp:4-8-3 --recipe fp32 --dp apmsqueeze --json -");
    const nlohmann::json json = nlohmann::json::parse(table.out)["traffic"];
    CHECK(json["last_step_bytes"] == traffic.last_step_bytes);
    // Rounded to whole bytes.
    CHECK(std::abs(json["bytes_per_step"].get<double>() - traffic.forecast_per_step) <= 0.5);
  });
}

TEST_CASE("traffic: votes end at 127 parts, int8 gradients do not, and no row is lost") {
  const Result table =
      run(std::string("inspect --model ") + kModel + " --dp all --ranks 200 --json -");
  REQUIRE(table.exit_code == 0);
  const nlohmann::json json = nlohmann::json::parse(table.out);
  REQUIRE(json["methods"].size() == traffic_ways().size());
  for (const nlohmann::json& method : json["methods"]) {
    CAPTURE(method["name"].get<std::string>());
    CHECK(method.contains("most_micro_batches") == (method["recipe"] == "votes"));
    CHECK(method.contains("bytes_per_step") == (method["recipe"] != "votes"));
  }
  CHECK(contains(run(std::string("inspect --model ") + kModel + " --dp all --ranks 200").out,
                 "at most 127 micro-batches"));
  CHECK(run("train --data iris --recipe latent8 --dp votes --micro-batches 200 --batch 500 "
            "--epochs 1 --quiet")
            .exit_code == 0);
}

TEST_CASE("traffic: inspect shows what training holds and sends, and refuses what it refuses") {
  const auto inspect = [](const std::string& more) {
    const Result result = run(std::string("inspect --model ") + kModel + " --json - --dp " + more);
    REQUIRE(result.exit_code == 0);
    return nlohmann::json::parse(result.out);
  };
  const double weights = 784 * 512 + 512 * 512 + 512 * 10, biases = 512 + 512 + 10;
  const auto gradients = [&](const std::string& more) {
    return inspect(more)["forecast_bytes"]["gradients"].get<double>();
  };
  CHECK(gradients("allreduce --recipe fp32") == 4 * (weights + biases));
  CHECK(gradients("allreduce --recipe fp32 --set gradient_format=bf16") == 2 * (weights + biases));
  CHECK(gradients("apmsqueeze --recipe fp32") == 4 * (weights + biases));
  CHECK(gradients("votes --recipe votes") == weights);
  CHECK(gradients("votes --recipe latent8") == 4 * weights);
  const nlohmann::json traffic = inspect("votes --ranks 4")["traffic"];
  CHECK(traffic["ranks"] == 4);
  CHECK(traffic["bytes_per_step"] == traffic["last_step_bytes"]);

  const std::string model = std::string("inspect --model ") + kModel;
  check_refused(model + " --recipe votes --dp apmsqueeze", "rule 'sign'");
  check_refused(model + " --recipe votes --dp votes --ranks 200", "at most 127 parts");
  check_refused(model + " --ranks 4", "--ranks are those of --dp");
  check_refused(model + " --live --dp votes", "leave out --live");
  check_refused("inspect m.safetensors --dp votes", "leave out the CHECKPOINT");
}

TEST_CASE("traffic: the former command names what took its place") {
  check_refused("traffic --model mlp:784-512-512-10 --ranks 4", "tritgrad inspect --model");
}

TEST_CASE("traffic: mistakes are one sentence") {
  const std::string model = std::string("inspect --model ") + kModel;
  check_refused(model + " --dp all --ranks 4 --micro-batches 6", "give a multiple of 4");
  check_refused(model + " --dp votes --ranks 4,8", "several numbers need --dp all");
  check_refused("inspect --model mlp:12 --dp all", "model");
  check_refused(model + " --dp all --link 0", "--link");
  check_refused(model + " --dp all --recipe votes", "leave out --recipe and --set");
  check_refused("train --data iris --dp vote", "did you mean 'votes'");
  check_refused("train --data iris --dp allreduce --dp-majority", "needs --dp votes");
  check_refused("train --data iris --dp apmsqueeze --dp-warmup 2", "--dp-warmup");
  check_refused("train --data iris --dp votes --dp-warmup .2", "only apmsqueeze has a warm-up");
  check_refused("train --data iris --dp allreduce --dp-scale rms", "only apmsqueeze scales signs");
  for (const char* seconds : {"nan", "0", "soon"}) {
    check_refused(std::string("train --data iris --dp votes --dp-timeout ") + seconds,
                  "give seconds, 1 to");
  }
  check_refused("train --data iris --dp-timeout 5",
                "--dp-timeout: without --dp there are no other");
  check_refused("train --data iris --dp apmsqueeze --dp-scale max", "--dp-scale");
  check_refused("train --data iris --dp votes --micro-batches 200 --batch 500", "at most 127");
}

}  // namespace tritgrad::test::test_traffic_forecast
