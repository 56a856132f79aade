// Forecasts of what data-parallel training sends, and the page made of them.
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/data/open_dataset.h"
#include "models/training/train.h"
#include "tests/support/markup_balance.h"
#include "tests/support/program.h"
#include "tests/support/thread_ranks.h"
#include "tools/report/svg.h"
#include "tools/report/traffic.h"

namespace tritgrad::test::test_traffic {
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

TEST_CASE("traffic: the page has the job that was asked about, beside others") {
  const std::string page = render_markdown(make_page({"command", kModel, 16, 32, {}}), "pictures");
  for (const char* job : {"| 2 | 2 |", "| 8 | 8 |", "| 16 | 32 |"}) CHECK(contains(page, job));
  // 128 parts are more than sums of votes hold.
  CHECK_FALSE(contains(render_markdown(make_page({"command", kModel, 64, 128, {}}), "pictures"),
                       "| votes | votes | 64 |"));
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
  const Result table = run(std::string("traffic --model ") + kModel + " --ranks 200 --json -");
  REQUIRE(table.exit_code == 0);
  const nlohmann::json json = nlohmann::json::parse(table.out);
  REQUIRE(json["methods"].size() == traffic_ways().size());
  for (const nlohmann::json& method : json["methods"]) {
    CAPTURE(method["name"].get<std::string>());
    CHECK(method.contains("most_micro_batches") == (method["recipe"] == "votes"));
    CHECK(method.contains("bytes_per_step") == (method["recipe"] != "votes"));
  }
  CHECK(contains(run("traffic --ranks 200").out, "at most 127 micro-batches"));
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

TEST_CASE("traffic: the command forecasts, reads measurements, and writes its page") {
  const Result table = run(std::string("traffic --model ") + kModel + " --ranks 4 --json -");
  REQUIRE(table.exit_code == 0);
  const nlohmann::json json = nlohmann::json::parse(table.out);
  CHECK(json["ranks"] == 4);
  REQUIRE(json["methods"].size() == traffic_ways().size());
  for (const nlohmann::json& method : json["methods"]) {
    CHECK(method["bytes_per_step"].get<std::int64_t>() > 0);
  }

  const TempDir folder;
  const std::string result = folder / "a run.json", page = folder / "page.html";
  REQUIRE(run("train --data iris --recipe votes --dp votes --micro-batches 2 --epochs 1 --json '" +
              result + "'")
              .exit_code == 0);
  check_refused("traffic --measured '" + result + "'", "add --report FILE");
  const Result written =
      run("traffic --measured '" + result + "' --report '" + page + "' --model " + kModel);
  REQUIRE(written.exit_code == 0);
  const std::string html = read_text(page);
  CHECK(markup_error(html) == "");
  CHECK(contains(html, "1e+12 parameters, 10 Gbit/s"));
  CHECK(contains(html, "<th scope=\"row\">votes</th>"));
  // The command is one that a shell understands.
  CHECK(contains(html, escape_markup("--measured '" + result + "' --report " + page)));

  const std::string markdown = folder / "page.md";
  REQUIRE(run("traffic --measured '" + result + "' --report '" + markdown + "'").exit_code == 0);
  CHECK(contains(read_text(markdown), "| votes | votes | "));
  CHECK(contains(read_text(markdown), "page/parameters-1e12.svg"));
  CHECK(markup_error(read_text(folder / "page/parameters-1e12.svg")) == "");
}

TEST_CASE("traffic: mistakes are one sentence") {
  const TempDir folder;
  const std::string result = folder / "run.json";
  REQUIRE(run("train --data iris --epochs 1 --json '" + result + "'").exit_code == 0);
  check_refused("traffic --measured '" + result + "'", "is not the result of a data-parallel run");
  check_refused("traffic --measured '" + folder.write("x", "{}") + "'", "is missing");
  check_refused("traffic --measured /nowhere.json", "/nowhere.json");
  check_refused("traffic --report page.txt", "NAME.html or NAME.md expected");
  check_refused("traffic --ranks 4 --micro-batches 6", "give a multiple of 4");
  check_refused("traffic --model mlp:12", "model");
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

}  // namespace tritgrad::test::test_traffic
