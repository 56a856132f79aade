// tritgrad bench: what it prints and what it refuses. How fast anything is, is not tested.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "engine/kernels/kernels.h"
#include "models/recipes/recipe.h"
#include "tests/support/json_keys.h"
#include "tests/support/program.h"
#include "tools/bench/bench.h"
#include "tools/bench/optimizer_passes.h"

namespace tritgrad::test::test_bench {
namespace {

using Json = nlohmann::json;

const std::string kSteps = "bench --only steps --model mlp:20-16-3 --batch 8 --rounds 1 ";

// Products of the scalar kernels would take minutes.
bool too_slow() {
  const bool reference = std::string(kernels().name) == "reference";
  if (reference) MESSAGE("skipped: benchmarks of large products, the reference would take minutes");
  return reference;
}

void check_ceilings(const Json& ceilings) {
  for (const Json& ceiling : ceilings) {
    CAPTURE(ceiling.dump());
    CHECK(keys_of(ceiling) == std::set<std::string>{"name", "unit", "value", "note"});
    CHECK(ceiling["name"].is_string());
    CHECK(ceiling["unit"].get<std::string>().ends_with("/s"));
    CHECK_FALSE(ceiling["note"].get<std::string>().empty());
    if (ceiling["name"] == "bf16" && ceiling["value"].is_null()) continue;
    CHECK(ceiling["value"].get<double>() > 0.0);
  }
}

// What a step of `operations` reports.
void check_step(const Json& step, const std::string& model, double operations,
                const Json& ceilings) {
  CAPTURE(step.dump());
  CHECK(keys_of(step) == std::set<std::string>{"name", "recipe", "compute", "model", "batch",
                                               "unit", "value", "forward_ms", "backward_ms",
                                               "update_ms", "gop_per_s", "ceiling", "share",
                                               "peak_live_bytes", "tokens_per_s", "counted"});
  CHECK(step["unit"] == "ms");
  CHECK(step["model"] == model);
  CHECK(step["batch"] == 8);
  double sum = 0.0;
  for (const char* phase : {"forward_ms", "backward_ms", "update_ms"}) {
    CHECK(step[phase].get<double>() > 0.0);
    sum += step[phase].get<double>();
  }
  // The phases are parts of that very step.
  CHECK(sum <= step["value"].get<double>() * (1.0 + 1e-9));
  CHECK(step["gop_per_s"].get<double>() * step["value"].get<double>() * 1e6 ==
        doctest::Approx(operations));
  CHECK(step["peak_live_bytes"].get<std::int64_t>() > 0);
  const auto found = std::find_if(ceilings.begin(), ceilings.end(), [&](const Json& ceiling) {
    return ceiling["name"] == step["ceiling"];
  });
  REQUIRE(found != ceilings.end());
  CHECK(step["share"].get<double>() * (*found)["value"].get<double>() ==
        doctest::Approx(step["gop_per_s"].get<double>()));
}

void check_perceptron_step(const Json& step, const Json& ceilings) {
  // 20 x 16 weights need two products, 16 x 3 need three, of two operations and 8 rows each.
  check_step(step, "mlp:20-16-3", 8.0 * (4.0 * 20 * 16 + 6.0 * 16 * 3), ceilings);
  CHECK(step["tokens_per_s"].is_null());
  CHECK(step["counted"] == "weights");
}

}  // namespace

TEST_CASE("bench: --json of training steps has every key, and phases that make up the whole") {
  const Result result = run(kSteps + "--recipe latent8,fp32 --json -");
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());  // no progress in a pipe
  const Json json = Json::parse(result.out);
  CHECK(keys_of(json) == std::set<std::string>{"tritgrad", "cpu", "isa", "float_products",
                                               "threads", "rounds", "peak_rss_bytes", "ceilings",
                                               "passes", "steps"});
  CHECK(json["tritgrad"] == TRITGRAD_VERSION);
  CHECK_FALSE(json["cpu"].get<std::string>().empty());
  CHECK(json["isa"].is_string());
  CHECK(json["float_products"].is_string());
  CHECK(json["threads"] == 1);
  CHECK(json["rounds"] == 1);
  CHECK(json["peak_rss_bytes"].get<std::int64_t>() > 1 << 20);
  CHECK(json["passes"].empty());
  check_ceilings(json["ceilings"]);
  REQUIRE(json["steps"].size() == 2);
  for (const Json& step : json["steps"]) check_perceptron_step(step, json["ceilings"]);
  CHECK(json["steps"][0]["name"] == "latent8 mlp:20-16-3 batch 8");
  CHECK(json["steps"][0]["ceiling"] == "int8 (trits)");
  CHECK(json["steps"][1]["name"] == "fp32 mlp:20-16-3 batch 8");
  CHECK(json["steps"][1]["ceiling"] == "fp32");
}

TEST_CASE("bench: a pass is bound by what it reads or by all that it moves") {
  const CeilingValues ceilings{{Ceiling::kDramRead, 12.0}, {Ceiling::kDramUpdate, 18.0}};
  // Two thousand million parameters a second that read 5 bytes and write one.
  const PassLimit reading = limit_of({"latent8", 2e9, 5.0, 6.0}, ceilings);
  CHECK(reading.ceiling == Ceiling::kDramRead);
  CHECK(reading.bytes_per_parameter == 5.0);
  CHECK(reading.share == doctest::Approx(10.0 / 12.0));
  const PassLimit moving = limit_of({"adamw", 0.6e9, 16.0, 28.0}, ceilings);
  CHECK(moving.ceiling == Ceiling::kDramUpdate);
  CHECK(moving.bytes_per_parameter == 28.0);
  CHECK(moving.share == doctest::Approx(16.8 / 18.0));
}

TEST_CASE("bench: kept gradients in bf16, clipped, are stepped as in training") {
  const TempDir folder;
  const std::string recipe =
      folder.write("kept.toml",
                   "base = \"votes\"\nname = \"kept\"\ngradients = \"kept\"\n"
                   "gradient_format = \"bf16\"\nclip_grad_norm = 1.0\n");
  const Result result = run(kSteps + "--recipe " + recipe + " --threads 2 --json -");
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const Json json = Json::parse(result.out);
  CHECK(json["threads"] == 2);
  check_perceptron_step(json["steps"][0], json["ceilings"]);
}

TEST_CASE("bench: of a language model, the products of projections and tokens count") {
  const std::string model = "llama:2,32:ff=48:context=16";
  const TempDir folder;
  const std::string file = folder / "b.json";
  const Result result = run("bench --only steps --batch 8 --rounds 1 --recipe latent8-lm,fp32-lm " +
                            ("--model " + model) + " --json " + file);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(contains(result.out, "rows are tokens"));
  const Json json = Json::parse(read_text(file));
  REQUIRE(json["steps"].size() == 2);
  for (const Json& step : json["steps"]) {
    // Two layers of four matrices of 32 x 32 and three of 32 x 48, three products of two operations
    // each, 8 windows of 16 tokens.
    check_step(step, model, 2.0 * (4 * 32 * 32 + 3 * 32 * 48) * 6.0 * 8 * 16, json["ceilings"]);
    CHECK(step["tokens_per_s"].get<double>() * step["value"].get<double>() ==
          doctest::Approx(1e3 * 8 * 16));
    CHECK(step["counted"] == "projections");
  }
  CHECK(json["steps"][0]["ceiling"] == "int8 (trits)");
  CHECK(json["steps"][1]["ceiling"] == "fp32");
}

TEST_CASE("bench: of a convolutional network, a weight counts at every pixel") {
  const std::string model = "conv:8x6x2-5-M-7-3";
  const Result result = run("bench --only steps --batch 8 --rounds 1 --recipe latent8 --model " +
                            model + " --json -");
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const Json json = Json::parse(result.out);
  REQUIRE(json["steps"].size() == 1);
  // Windows of 9 pixels: two products at 48 pixels, three at 12, and those of the head, each of two
  // operations, for 8 images.
  const double products = 2.0 * 48 * 9 * 2 * 5 + 3.0 * 12 * 9 * 5 * 7 + 3.0 * 7 * 3;
  check_step(json["steps"][0], model, 2.0 * products * 8, json["ceilings"]);
}

#ifndef TRITGRAD_SANITIZED  // sanitizers have memory of their own
// How much the program and its libraries need differs by several MiB between systems, so it is
// measured: a network of a few hundred weights runs the same code.
TEST_CASE("bench: training latent8 at batch 256 adds less than 11 and 51 MiB to its process") {
  if (too_slow()) return;
  const auto peak_rss = [](const std::string& model) {
    const Result result =
        run("bench --only steps --recipe latent8 --rounds 1 --json - --model " + model);
    CAPTURE(result.err);
    REQUIRE(result.exit_code == 0);
    return Json::parse(result.out)["peak_rss_bytes"].get<std::int64_t>();
  };
  const std::int64_t program = peak_rss("mlp:20-16-3 --batch 8");
  // 1.9 and 20 million parameters.
  CHECK(peak_rss("mlp:784-1024-1024-10 --batch 256") - program < 11 << 20);
  CHECK(peak_rss("mlp:784-4096-4096-10 --batch 256") - program < 51 << 20);
}
#endif

TEST_CASE("bench: ceilings as a table and as a file") {
  if (too_slow()) return;
  const TempDir folder;
  const std::string file = folder / "b.json";
  const Result result = run("bench --only ceilings --rounds 1 --json " + file);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(contains(result.out, "DRAM read+write"));
  const Json json = Json::parse(read_text(file));
  CHECK(json["ceilings"].size() == kCeilingCount);
  check_ceilings(json["ceilings"]);
  CHECK(json["steps"].empty());
}

TEST_CASE("bench: wrong words and numbers are refused in one sentence, before any work") {
  check_refused("bench --only pases", "did you mean 'passes'? Known: ceilings, passes, steps");
  check_refused("bench --only kernels,steps", "use 'ceilings' for what this machine can do");
  check_refused("bench --only ceilings,ceilings", "named twice");
  check_refused("bench --model mlp:20,16", "give all widths");
  check_refused("bench --model mpl:20-16-3", "mlp:");
  check_refused("bench --model conv:16,M", "give all of it");
  check_refused("bench --model llama:2,33", "width 33 is odd");
  check_refused("bench --model mlp:20-16-3 --model mlp:20-16-3", "named twice");
  check_refused("bench --recipe latent", "latent8");
  check_refused("bench --batch 0", "--batch");
  check_refused("bench --batch many", "--batch");
  check_refused("bench --rounds 0", "--rounds");
  check_refused("bench --threads 0", "--threads");
  check_refused("bench --json /nonexistent/b.json", "no folder '/nonexistent'");
  check_refused("bench --round 1", "--rounds");
  // Also what is not measured.
  check_refused("bench --only ceilings --recipe nope", "nope");
  check_refused("bench --only passes --model nope:3", "nope:3");
  // The advice is of options that there are.
  const auto advice = [](const std::string& options) {
    const Result refused = run("bench --rounds 1 --only steps " + options);
    CHECK(refused.exit_code == 1);
    CHECK(refused.err.find("name the data") == std::string::npos);
    CHECK(refused.err.find("--compute") == std::string::npos);
    return refused.err;
  };
  CHECK(advice("--model mlp:64").ends_with("such as mlp:784-512-512-10\n"));
  CHECK(advice("--model conv:4,M").ends_with("such as conv:32x32x3-32-M-64-M-10\n"));
  CHECK(advice("--model mlp:2-2-2 --batch 1000000 --recipe latent8")
            .ends_with("use a smaller batch or a recipe that computes in fp32\n"));
}

// As FORMATS.md lists them: no other test writes passes.
TEST_CASE("bench: --json of passes has every key") {
  BenchResults results;
  results.passes = {entry_of({"adamw", 0.6e9, 16.0, 28.0}, {})};
  const Json pass = Json::parse(bench_json(results))["passes"][0];
  CHECK(keys_of(pass) == std::set<std::string>{"name", "unit", "value", "bytes_read_per_parameter",
                                               "bytes_per_parameter", "ceiling", "share"});
}

TEST_CASE("bench: every rule, and every format that recipes keep weights in, has a pass") {
  const auto has = [](const auto& wanted) {
    const std::span<const PassSpec> specs = pass_specs();
    return std::any_of(specs.begin(), specs.end(), wanted);
  };
  for (int i = 0; i < kRuleCount; ++i) {
    const auto rule = static_cast<RuleKind>(i);
    CAPTURE(std::string(rule_name(rule)));
    CHECK(has([&](const PassSpec& spec) { return spec.rule == rule; }));
  }
  for (const std::string& name : recipe_names()) {
    CAPTURE(name);
    const FormatKind weight = load_recipe(name).group(Role::kWeight).format.kind;
    CHECK(has([&](const PassSpec& spec) { return spec.weight == weight; }));
  }
}

TEST_CASE("bench: passes of ternary recipes keep what the recipes keep") {
  for (const char* name : {"votes", "latent8", "latent6", "latent5", "latent4", "shared4",
                           "shared8", "shared16", "trits", "eco"}) {
    CAPTURE(name);
    const Recipe recipe = load_recipe(name);
    const Recipe::Group& weight = recipe.group(Role::kWeight);
    const ParameterSpec matrix{"w", Role::kWeight, {64, 64}, weight.format, {}};
    const std::span<const PassSpec> specs = pass_specs();
    const auto pass = std::find_if(specs.begin(), specs.end(), [&](const PassSpec& spec) {
      return spec.weight == weight.format.kind && spec.eco == weight.update.eco;
    });
    REQUIRE(pass != specs.end());
    const GroupSpec group = pass_group(*pass);
    CHECK(group.rule.kind == weight.update.rule.kind);
    CHECK(group.rule.momentum == weight.update.rule.momentum);
    CHECK(Optimizer::state_bytes(matrix, group) == Optimizer::state_bytes(matrix, weight.update));
  }
}

TEST_CASE("bench: names are unique, so that two results can be compared") {
  std::vector<std::string> names;
  for (const PassSpec& spec : pass_specs()) names.push_back(spec.name);
  CHECK(names.size() > 10);
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

}  // namespace tritgrad::test::test_bench
