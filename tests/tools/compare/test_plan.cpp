// Plans: several comparisons from one file, by one command, onto one page.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "models/footprint.h"
#include "models/networks/model.h"
#include "tests/support/program.h"
#include "tools/compare/request.h"

namespace tritgrad::test::test_plan {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kPlan =
    "recipes = [\"master\", \"latent8\"]\n"
    "seeds = 2\n"
    "tune = 2\n"
    "epochs = 2\n"
    "model = \"mlp:8\"\n"
    "[set]\n"
    "clip_grad_norm = 0.0\n"
    "\n"
    "[[comparison]]\n"
    "data = \"iris\"\n"
    "[[comparison]]\n"
    "data = \"wine\"\n"
    "seeds = 3\n"
    "tune = 1\n"
    "recipes = \"latent8,fp32,master\"\n";

void check_plan_refused(const std::string& plan, const std::string& part,
                        const std::string& more = "") {
  CAPTURE(plan);
  const TempDir folder;
  folder.write("plan.toml", plan);
  check_refused("compare --plan " + (folder / "plan.toml").string() + " --cache " +
                    (folder / "cache").string() + " " + more,
                part);
  CHECK_FALSE(fs::exists(folder / "cache"));  // no run was made before
}

}  // namespace

TEST_CASE("plan: its comparisons run one after the other, and a second time from the cache") {
  const TempDir folder;
  folder.write("plan.toml", kPlan);
  const std::string command = "compare --plan " + (folder / "plan.toml").string() + " --cache " +
                              (folder / "cache").string() + " --report " +
                              (folder / "page.md").string() + " --json " +
                              (folder / "out.json").string();
  const Result first = run(command);
  CAPTURE(first.err);
  REQUIRE(first.exit_code == 0);
  // 2 recipes x (2 rates + 2 seeds), 3 recipes x 3 seeds.
  CHECK(contains(first.err, "[17/17]"));
  CHECK_FALSE(contains(first.err, "cached"));
  const Json json = Json::parse(read_text(folder / "out.json"))["comparisons"];
  REQUIRE(json.size() == 2);
  CHECK(json[0]["data"] == "iris");
  CHECK(json[0]["runs"].size() == 4);
  CHECK(json[0]["recipes"][0]["tuning"]["candidates"].size() == 2);
  CHECK(json[0]["recipes"][1]["delta_interval"].size() == 2);
  CHECK(json[1]["data"] == "wine");
  CHECK(json[1]["runs"].size() == 9);
  CHECK(json[1]["runs"][0]["epochs"] == 2);
  CHECK(json[1]["recipes"][0]["tuning"].is_null());

  // The command of each comparison says the same as its table in the plan.
  const std::string single = json[1]["command"];
  CHECK(single ==
        "tritgrad compare --data wine --model mlp:8 --epochs 2 --set clip_grad_norm=0 --recipes "
        "latent8,fp32,master --seeds 3 --tune 1");
  const Result alone = run(single.substr(std::string("tritgrad ").size()) + " --cache " +
                           (folder / "cache").string() + " --json -");
  REQUIRE(alone.exit_code == 0);
  const Json repeated = Json::parse(alone.out);
  for (const Json& one : repeated["comparisons"][0]["runs"]) {
    CHECK(one["cached"] == true);
  }

  const std::string page = read_text(folder / "page.md");
  CHECK(contains(page, "--plan"));
  CHECK(contains(page, single));
  for (const Json& comparison : json) {
    const std::string data = comparison["data"];
    CHECK(contains(page, "## mlp:8 on " + data));
  }
  int pictures = 0;
  for (std::size_t at = 0; (at = page.find("<img src=\"", at)) != std::string::npos;) {
    at += 10;
    CHECK(fs::file_size(folder / page.substr(at, page.find('"', at) - at)) > 0);
    ++pictures;
  }
  CHECK(pictures == 5 + 4);  // the second has no rows held out to watch

  const Result again = run(command);
  REQUIRE(again.exit_code == 0);
  std::size_t cached = 0;
  for (std::size_t at = 0; (at = again.err.find(", cached", at)) != std::string::npos; ++at) {
    ++cached;
  }
  CHECK(cached == 17);
  CHECK_FALSE(contains(run(command + " --fresh").err, "cached"));
}

TEST_CASE("plan: that of RESULTS.md fits the data that it names") {
  const std::map<std::string, ModelInput> inputs = {{"mnist", {784, {28, 28, 1}}},
                                                    {"fashion-mnist", {784, {28, 28, 1}}},
                                                    {"cifar10", {3 * 1024, {32, 32, 3}}},
                                                    {"letter", 16},
                                                    {"shuttle", 9},
                                                    {"wdbc", 30},
                                                    {"digits", 64}};
  const auto requests = read_plan(TRITGRAD_SOURCE_DIR "/tools/results.toml", "");
  CHECK(requests.size() >= inputs.size());
  for (const ComparisonRequest& request : requests) {
    CAPTURE(request.where);
    CHECK(std::find(request.options.recipes.begin(), request.options.recipes.end(), "master") !=
          request.options.recipes.end());
    for (const std::string& recipe : request.options.recipes) {
      CHECK_NOTHROW(plan_model(request.options.train.model, inputs.at(request.common.train.data),
                               10, load_recipe(recipe)));
    }
  }
}

TEST_CASE("plan: those beside peers fit their data, and stand beside what was published") {
  const std::map<std::string, ModelInput> inputs = {{"mnist", {784, {28, 28, 1}}},
                                                    {"fashion-mnist", {784, {28, 28, 1}}},
                                                    {"cifar10", {3 * 1024, {32, 32, 3}}}};
  std::vector<ComparisonRequest> all = read_plan(TRITGRAD_SOURCE_DIR "/tools/peers.toml", "");
  for (ComparisonRequest& each : read_plan(TRITGRAD_SOURCE_DIR "/tools/peers_night.toml", "")) {
    all.push_back(std::move(each));
  }
  for (const ComparisonRequest& request : all) {
    CAPTURE(request.where);
    const std::int64_t side = request.options.train.resize;
    const ModelInput input =
        side > 0 ? ModelInput{side * side, {side, side, 1}} : inputs.at(request.common.train.data);
    for (const std::string& recipe : request.options.recipes) {
      CHECK_NOTHROW(plan_model(request.options.train.model, input, 10, load_recipe(recipe)));
    }
    REQUIRE(request.published.size() >= 2);
    for (const PublishedResult& result : request.published) {
      CHECK(result.score > 50.0);  // in %
      CHECK(result.score < 100.0);
    }
  }
}

TEST_CASE("plan: what others published has rows of its own in the page and in the JSON") {
  const TempDir folder;
  folder.write("plan.toml",
               "epochs = 1\nrecipes = [\"fp32\", \"latent8\"]\nmodel = \"mlp:4\"\nseeds = 1\n"
               "[[comparison]]\ndata = \"iris\"\n"
               "[[comparison.published]]\nname = \"Theirs\"\nscore = 96\nspread = 0.5\n"
               "bytes = 4\nprotocol = \"the best of ten\"\n"
               "[[comparison.published]]\nname = \"Others\"\nscore = 95.5\n"
               "protocol = \"once\"\n"
               "[[comparison]]\ndata = \"wine\"\n");
  const Result result =
      run("compare --plan " + (folder / "plan.toml").string() + " --cache " +
          (folder / "cache").string() + " --report " + (folder / "page.md").string() + " --json " +
          (folder / "out.json").string());
  REQUIRE(result.exit_code == 0);
  CHECK(contains(result.out, "Theirs (published)"));
  const std::string page = read_text(folder / "page.md");
  CHECK(contains(page, "| Theirs (published) | – | 96.00 ± 0.50 |"));
  CHECK(contains(page, "Theirs (published): the best of ten\n"));
  CHECK(contains(page, "| Others (published) | – | 95.50 |"));
  const Json json = Json::parse(read_text(folder / "out.json"))["comparisons"];
  CHECK(json[0]["published"] == Json::parse(R"([{"name": "Theirs", "score": 96.0, "spread": 0.5,
                         "bytes_per_parameter": 4.0, "protocol": "the best of ten"},
                        {"name": "Others", "score": 95.5, "spread": null,
                         "bytes_per_parameter": null, "protocol": "once"}])"));
  CHECK(json[0]["recipes"].size() == 2);
  CHECK_FALSE(json[1].contains("published"));
}

TEST_CASE("plan: a published result is refused with its line") {
  const auto refused = [](const std::string& keys, const std::string& part) {
    check_plan_refused("[[comparison]]\ndata = \"iris\"\n[[comparison.published]]\n" + keys, part);
  };
  refused("name = \"a\"\nscore = 1\nprotocl = \"p\"\n",
          "line 6: unknown key 'protocl' of a published result; did you mean 'protocol'");
  refused("name = \"a\"\nprotocol = \"p\"\n", "the published result in line 3: score is missing");
  refused("name = \"a\"\nscore = \"1\"\nprotocol = \"p\"\n", "score is no number from 0 on");
  refused("name = \"a\"\nscore = 1\nspread = -1\nprotocol = \"p\"\n",
          "spread is no number from 0 on");
  refused("name = \"a\"\nscore = 1\nbytes = nan\nprotocol = \"p\"\n",
          "bytes is no number above 0, 1e9 at most");
  refused("name = \"a\"\nscore = 1\nbytes = 0\nprotocol = \"p\"\n", "bytes is no number above 0");
  refused("name = \"a\"\nscore = 1\nbytes = 1e300\nprotocol = \"p\"\n", "1e9 at most");
  refused("name = \"a\"\nscore = 1e30\nprotocol = \"p\"\n",
          "score is no number from 0 on, 1e9 at most");
  refused("name = \"a\"\nscore = 101.0\nprotocol = \"p\"\n",
          "the published result 'a': score is 101, but accuracies are in %, 100 at most");
  refused("name = \"a\"\nscore = 99\nspread = 101\nprotocol = \"p\"\n", "spread is 101, but");
  refused("name = \"" + std::string(3000, 'a') + "\"\nscore = 1\nprotocol = \"p\"\n",
          "name has 3000 bytes, at most 60 fit into a table");
  refused(
      "name = \"a\"\nscore = 1\nprotocol = \"p\"\n[[comparison.published]]\nname = \"a\"\n"
      "score = 2\nprotocol = \"q\"\n",
      "line 7: the name 'a' is that of another one");
  refused("score = 1\nprotocol = \"p\"\n", "name is no line of text");
  refused("name = \"a\"\nscore = 1\n", "protocol is no line of text");
  refused("name = \"a\"\nscore = 1\nprotocol = \"p\\nq\"\n", "protocol is no line of text");
  check_plan_refused("[[comparison]]\npublished = 5\n", "line 2: published is no list of tables");
  check_plan_refused("[[published]]\nname = \"a\"\n[[comparison]]\ndata = \"iris\"\n",
                     "unknown key 'published'");
}

TEST_CASE("plan: the recipes of the publications' claims take the bytes that those count") {
  // Of a weight, with gradients where a recipe keeps them. Fp8 has a bf16 scale for each row of 128
  // or 256: at most 2 / 128 more. Ours of 8-bit moments: 2 / 32 each.
  const std::map<std::string, std::pair<double, double>> expected = {
      {"fp8-master", {12, 0}},
      {"fp8-eco", {9, 2.0 / 128}},
      {"fp8-naive-nearest", {9, 2.0 / 128}},
      {"fp8-naive-stochastic", {9, 2.0 / 128}},
      {"int4-master", {12, 0}},
      {"int4-eco", {8.5, 2.0 / 32}},
      {"int4-naive-nearest", {8.5, 2.0 / 32}},
      {"int4-naive-stochastic", {8.5, 2.0 / 32}},
      {"fp32-lm", {16, 0}},
      {"flash-adamw-lm", {7, 4.0 / 32}},
      {"lion-lm", {12, 0}},
      {"flash-lion-lm", {6, 2.0 / 32}},
      {"sgd-lm", {12, 0}},
      {"flash-sgd-lm", {6, 2.0 / 32}},
      {"adam8-lm", {4, 4.0 / 32}},
      // bf16; 10 rows of 4 bytes for one weight in a hundred or more; 4 bits and two bounds for 64.
      {"microadam-lm", {2.9, 0.1}}};
  std::set<std::string> found;
  for (const ComparisonRequest& request : read_plan(TRITGRAD_SOURCE_DIR "/tools/claims.toml", "")) {
    CAPTURE(request.where);
    CHECK_FALSE(request.title.empty());
    std::vector<std::string> names;
    for (const std::string& name : request.options.recipes) {
      const bool is_file = name.ends_with(".toml");
      const Recipe recipe = load_recipe(is_file ? TRITGRAD_SOURCE_DIR "/" + name : name);
      names.push_back(recipe.name);
      CAPTURE(recipe.name);
      const auto plan = plan_model(request.options.train.model, 0, 256, recipe);
      const double bytes = *bytes_per_weight(forecast_footprint(plan, recipe));
      const auto [least, more] = expected.at(recipe.name);
      CHECK(bytes >= least);
      // Rules count their steps in 8 bytes for each matrix, of 128 x 128 elements or more.
      CHECK(bytes <= least + more + 8.0 / (128 * 128));
      found.insert(recipe.name);
    }
    CHECK(names.front() == request.options.baseline);
  }
  CHECK(found.size() == expected.size());
}

TEST_CASE("plan: what ends a later comparison leaves the page of those before it") {
  const TempDir folder;
  folder.write("plan.toml",
               "epochs = 1\nrecipes = [\"fp32\", \"master\"]\nmodel = \"mlp:4\"\nseeds = 1\n"
               "[[comparison]]\ndata = \"iris\"\n[[comparison]]\ndata = \"wine\"\nbatch = 1\n");
  fs::create_directory(folder / "page");
  folder.write("page/3-old-pareto.svg", "of another page");
  folder.write("page/notes.svg", "somebody's own");
  const Result result =
      run("compare --plan " + (folder / "plan.toml").string() + " --cache " +
          (folder / "cache").string() + " --report " + (folder / "page.md").string());
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "the comparison in line 7: batch_norm"));
  const std::string page = read_text(folder / "page.md");
  CHECK(contains(page, "mlp:4 on iris"));
  CHECK_FALSE(contains(page, "wine"));
  CHECK(fs::exists(folder / "page/1-iris-pareto.svg"));
  CHECK(fs::exists(folder / "page/notes.svg"));
  CHECK_FALSE(fs::exists(folder / "page/3-old-pareto.svg"));
}

TEST_CASE("plan: mistakes are refused before any run, with the line") {
  check_plan_refused("", "no [[comparison]]");
  check_plan_refused("[comparison]\ndata = \"iris\"\n", "no [[comparison]]");
  check_plan_refused("x = = 1\n", "line 1");
  check_plan_refused("seeds = 2\n\n[[comparison]]\ndata = \"iris\"\nepoch = 2\n",
                     "line 5: unknown key 'epoch'; did you mean 'epochs'");
  check_plan_refused("seed = 2\n[[comparison]]\ndata = \"iris\"\n", "line 1: unknown key 'seed'");
  for (const char* key :
       {"json", "quiet", "threads", "cache", "config", "plan", "report", "fresh"}) {
    check_plan_refused("[[comparison]]\n" + std::string(key) + " = \"x\"\n",
                       "line 2: unknown key '" + std::string(key) + "'");
  }
  check_plan_refused("[[comparison]]\ndata = \"iris\"\n[[comparison]]\nepochs = 0\n",
                     "comparison in line 3");
  check_plan_refused("[[comparison]]\ndata = \"iris\"\n[[comparison]]\ndata = \"win\"\n",
                     "the comparison in line 3: no data set or file \"win\"");
  check_plan_refused("[[comparison]]\ndata = \"iris\"\nrecipes = [\"vote\"]\n",
                     "did you mean 'votes'");
  check_plan_refused("[[comparison]]\ndata = \"iris\"\ntune = 3\nfolds = 5\n",
                     "plan.toml', the comparison in line 1: --tune: with --folds");
  check_plan_refused("[[comparison]]\ndata = \"iris\"\nlr = \"abc\"\n",
                     "the comparison in line 1: --lr: 'abc' is no number");
  check_plan_refused("[[comparison]]\ndata = \"iris\"\nrecipes = [\"all\", \"fp32\"]\n",
                     "the comparison in line 1: --recipes: 'all' stands alone");
  check_plan_refused("[[comparison]]\ndata = \"iris\"\n", "write it there", "--epochs 2");
  check_plan_refused("[[comparison]]\ndata = \"iris\"\n", "--report", "--report /nonexistent/r.md");
  check_refused("compare --plan ''", "--plan: is empty");
  check_refused("compare --plan /nonexistent.toml", "plan '/nonexistent.toml' cannot be read");
}

}  // namespace tritgrad::test::test_plan
