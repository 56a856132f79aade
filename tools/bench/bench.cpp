#include "tools/bench/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "engine/check.h"
#include "engine/kernels/kernels.h"
#include "engine/memory/parallel.h"
#include "engine/text.h"
#include "models/recipes/recipe.h"
#include "ops/products/dense_product.h"
#include "tools/bench/ceilings.h"
#include "tools/bench/optimizer_passes.h"
#include "tools/bench/training_steps.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/terminal.h"
#include "tools/report/system_info.h"
#include "tools/report/table.h"

namespace tritgrad {
namespace {

template <typename T>
void check_no_repeats(const char* option, const std::vector<T>& values) {
  for (const T& value : values) {
    check(std::count(values.begin(), values.end(), value) == 1, option, ": '", value,
          "' is named twice");
  }
}

void check_options(const BenchOptions& options) {
  const std::vector<std::string> groups = BenchOptions{}.groups;
  for (const std::string& group : options.groups) {
    check(group != "kernels", "--only: single kernels are no longer measured; use 'ceilings' for ",
          "what this machine can do, 'passes' for the optimizer, 'steps' for whole training steps");
    check(std::find(groups.begin(), groups.end(), group) != groups.end(), "--only: '", group,
          "' is no group of benchmarks", did_you_mean(group, groups));
  }
  check_no_repeats("--only", options.groups);
  check_no_repeats("--model", options.models);
  check_no_repeats("--recipe", options.recipes);
  check_no_repeats("--batch", options.batches);
  // Also where there are no steps to measure.
  for (const std::string& recipe : options.recipes) load_recipe(recipe);
  for (const std::string& model : options.models) check_step_model(model);
}

using Measurements = std::vector<std::unique_ptr<Measurement>>;

struct Suite {
  explicit Suite(const BenchOptions& options) {
    const auto asked_for = [&](const char* group) {
      return std::count(options.groups.begin(), options.groups.end(), group) > 0;
    };
    if (asked_for("passes")) {
      for (const PassSpec& spec : pass_specs()) passes.push_back(measurement_of(spec));
    }
    if (asked_for("steps")) add_steps(options);
    for (int i = 0; asked_for("ceilings") && i < kCeilingCount; ++i) {
      limits.insert(static_cast<Ceiling>(i));
    }
    for (const Measurements* group : {&passes, &steps}) {
      for (const auto& each : *group) limits.merge(each->ceilings());
    }
    for (const Ceiling ceiling : limits) ceilings.push_back(measurement_of(ceiling));
  }

  void add_steps(const BenchOptions& options) {
    for (const std::string& model : options.models) {
      for (const std::int64_t batch : options.batches) {
        for (const std::string& recipe : options.recipes) {
          steps.push_back(step_measurement(recipe, model, batch));
        }
      }
    }
  }

  std::set<Ceiling> limits;
  Measurements ceilings, passes, steps;  // there is one of `ceilings` for each of `limits`
};

std::vector<BenchEntry> entries(const Measurements& measurements, const CeilingValues& values) {
  std::vector<BenchEntry> list;
  for (const auto& each : measurements) list.push_back(each->entry(values));
  return list;
}

void add_rows(Table& table, const std::vector<BenchEntry>& list) {
  std::string section;
  for (const BenchEntry& entry : list) {
    if (entry.section != section) table.add_section(entry.section);
    section = entry.section;
    table.add_row(entry.row);
  }
}

constexpr const char* kOfTexts =
    "Of language models, rows are tokens, and products (GOP/s, share) those of the projections:\n"
    "what the head, in fp32, and attention multiply counts as time only.\n";

bool has_text(const std::vector<BenchEntry>& steps) {
  return std::any_of(steps.begin(), steps.end(),
                     [](const BenchEntry& step) { return step.json["counted"] == "projections"; });
}

nlohmann::ordered_json json_list(const std::vector<BenchEntry>& list) {
  auto json = nlohmann::ordered_json::array();
  for (const BenchEntry& entry : list) json.push_back(entry.json);
  return json;
}

}  // namespace

BenchResults run_bench(const BenchOptions& options) {
  check_options(options);
  const Suite suite(options);
  const InterruptWatch watch;
  StatusLine status(stderr, options.quiet);
  for (int round = 1; round <= options.rounds; ++round) {
    for (const Measurements* group : {&suite.ceilings, &suite.passes, &suite.steps}) {
      for (const auto& each : *group) {
        status.show(fmt::format("round {}/{}  {}", round, options.rounds, each->name()));
        each->measure();
        watch.end_if_interrupted("nothing was measured to the end, so nothing is reported");
      }
    }
  }
  BenchResults results{options.rounds, entries(suite.ceilings, {}), {}, {}};
  CeilingValues values;
  auto entry = results.ceilings.begin();
  for (const Ceiling ceiling : suite.limits) values[ceiling] = (entry++)->json["value"];
  results.passes = entries(suite.passes, values);
  results.steps = entries(suite.steps, values);
  return results;
}

std::string render_bench(const BenchResults& results) {
  Table rates(
      {{"what"}, {"speed", Align::kRight}, {"unit"}, {"share", Align::kRight}, {"of, or by"}});
  add_rows(rates, results.ceilings);
  add_rows(rates, results.passes);
  if (results.steps.empty()) return rates.render();
  Table steps({{"training step"},
               {"step", Align::kRight, "milliseconds"},
               {"forward", Align::kRight, "milliseconds"},
               {"backward", Align::kRight, "milliseconds"},
               {"update", Align::kRight, "milliseconds"},
               {"rows/s", Align::kRight},
               {"GOP/s", Align::kRight},
               {"share", Align::kRight},
               {"of"},
               {"peak live", Align::kRight}});
  add_rows(steps, results.steps);
  return rates.render() + "\n" + steps.render() +
         "update: of recipes that compute a gradient as it is read (int8), with that product.\n" +
         (has_text(results.steps) ? kOfTexts : "");
}

std::string bench_json(const BenchResults& results) {
  const nlohmann::ordered_json json = {{"tritgrad", TRITGRAD_VERSION},
                                       {"cpu", processor()},
                                       {"isa", kernels().name},
                                       {"float_products", dense_product_library()},
                                       {"threads", thread_count()},
                                       {"rounds", results.rounds},
                                       {"peak_rss_bytes", peak_rss_bytes()},
                                       {"ceilings", json_list(results.ceilings)},
                                       {"passes", json_list(results.passes)},
                                       {"steps", json_list(results.steps)}};
  return json.dump(2);
}

}  // namespace tritgrad
