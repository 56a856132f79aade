#include "tools/bench/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/check.h"
#include "engine/kernels/kernels.h"
#include "engine/memory/parallel.h"
#include "engine/text.h"
#include "ops/products/dense_product.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/terminal.h"
#include "tools/report/system_info.h"
#include "tools/report/table.h"

namespace tritgrad {
namespace {

// ---- measuring ---------------------------------------------------------------------------------

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
    check(group != "kernels",
          "--only: single kernels are measured no longer; the steps, passes and ceilings that they "
          "are part of are: --only ceilings,passes,steps");
    check(std::find(groups.begin(), groups.end(), group) != groups.end(), "--only: '", group,
          "' is no group of benchmarks", did_you_mean(group, groups));
  }
  check_no_repeats("--only", options.groups);
  check_no_repeats("--model", options.models);
  check_no_repeats("--recipe", options.recipes);
  check_no_repeats("--batch", options.batches);
}

class Suite {
 public:
  explicit Suite(const BenchOptions& options) : options_(options) {
    check_options(options);
    std::set<Ceiling> wanted;
    if (asked_for("ceilings")) {
      for (int i = 0; i < kCeilingCount; ++i) wanted.insert(static_cast<Ceiling>(i));
    }
    if (asked_for("passes")) {
      wanted.insert({Ceiling::kDramRead, Ceiling::kDramUpdate});
      for (const PassSpec& spec : pass_specs()) passes_.emplace_back(spec);
    }
    if (asked_for("steps")) add_steps(wanted);
    for (const Ceiling ceiling : wanted) ceilings_.emplace_back(ceiling);
  }

  BenchResults run() {
    const InterruptWatch watch;
    StatusLine status(stderr, options_.quiet);
    for (int round = 1; round <= options_.rounds; ++round) {
      const auto measure_all = [&](auto& cases) {
        for (auto& each : cases) {
          status.show(fmt::format("round {}/{}  {}", round, options_.rounds, each.name()));
          each.measure();
          watch.end_if_interrupted("nothing was measured to the end, so nothing is reported");
        }
      };
      measure_all(ceilings_);
      measure_all(passes_);
      measure_all(steps_);
    }
    BenchResults results{options_.rounds, {}, {}, {}};
    for (const CeilingCase& each : ceilings_) results.ceilings.push_back(each.result());
    for (const PassCase& each : passes_) results.passes.push_back(each.result());
    for (const StepCase& each : steps_) results.steps.push_back(each.result());
    return results;
  }

 private:
  bool asked_for(const char* group) const {
    const std::vector<std::string>& groups = options_.groups;
    return std::find(groups.begin(), groups.end(), group) != groups.end();
  }

  void add_steps(std::set<Ceiling>& wanted) {
    for (const std::string& model : options_.models) {
      for (const std::int64_t batch : options_.batches) {
        for (const std::string& recipe : options_.recipes) {
          steps_.emplace_back(StepSpec{recipe, model, batch});
          wanted.insert(steps_.back().ceiling());
        }
      }
    }
  }

  const BenchOptions& options_;
  std::vector<CeilingCase> ceilings_;
  std::vector<PassCase> passes_;
  std::vector<StepCase> steps_;
};

// ---- tables ------------------------------------------------------------------------------------

std::string share_text(const std::optional<double>& share) {
  return share ? percent(*share, 0) : std::string(kMissing);
}

std::string render_rates(const BenchResults& results) {
  Table table(
      {{"what"}, {"speed", Align::kRight}, {"unit"}, {"share", Align::kRight}, {"of, or by"}});
  if (!results.ceilings.empty()) table.add_section("ceilings");
  for (const CeilingResult& each : results.ceilings) {
    table.add_row({ceiling_name(each.ceiling),
                   each.value ? significant(*each.value, 3) : std::string(kMissing),
                   ceiling_unit(each.ceiling), "", each.note});
  }
  if (!results.passes.empty()) table.add_section("optimizer, 4096 x 4096");
  for (const PassResult& each : results.passes) {
    const PassLimit limit = results.limit(each);
    table.add_row({each.name, significant(1e-6 * each.parameters_per_second, 3), "Mparam/s",
                   share_text(limit.share),
                   fmt::format("{} at {:.2f} B/param", ceiling_name(limit.ceiling),
                               limit.bytes_per_parameter)});
  }
  return table.render();
}

std::string render_steps(const BenchResults& results) {
  Table table({{"training step"},
               {"step", Align::kRight, "milliseconds"},
               {"forward", Align::kRight, "milliseconds"},
               {"backward", Align::kRight, "milliseconds"},
               {"update", Align::kRight, "milliseconds"},
               {"GOP/s", Align::kRight},
               {"share", Align::kRight},
               {"of"},
               {"peak live", Align::kRight}});
  std::string section;
  for (const StepResult& each : results.steps) {
    const std::string title = fmt::format("{} batch {}", each.spec.model, each.spec.batch);
    if (title != section) table.add_section(title);
    section = title;
    const auto milliseconds = [](double seconds) { return significant(1e3 * seconds, 3); };
    const double speed = each.gop_per_second();
    table.add_row(
        {each.spec.recipe, milliseconds(each.times.whole), milliseconds(each.times.phases.forward),
         milliseconds(each.times.phases.backward), milliseconds(each.times.phases.update),
         significant(speed, 3), share_text(results.share(each.ceiling, speed)),
         ceiling_name(each.ceiling), human_bytes(static_cast<double>(each.peak_live_bytes))});
  }
  return table.render() +
         "update: of recipes that compute a gradient as it is read (int8), with that product.\n";
}

// ---- JSON --------------------------------------------------------------------------------------

using OrderedJson = nlohmann::ordered_json;

template <typename T>
OrderedJson or_null(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson ceiling_json(const BenchResults&, const CeilingResult& ceiling) {
  return {{"name", ceiling_name(ceiling.ceiling)},
          {"unit", ceiling_unit(ceiling.ceiling)},
          {"value", or_null(ceiling.value)},
          {"note", ceiling.note}};
}

OrderedJson pass_json(const BenchResults& results, const PassResult& pass) {
  const PassLimit limit = results.limit(pass);
  return {{"name", pass.name},
          {"unit", "Mparam/s"},
          {"value", 1e-6 * pass.parameters_per_second},
          {"bytes_read_per_parameter", pass.bytes_read_per_parameter},
          {"bytes_per_parameter", pass.bytes_per_parameter},
          {"ceiling", ceiling_name(limit.ceiling)},
          {"share", or_null(limit.share)}};
}

OrderedJson step_json(const BenchResults& results, const StepResult& step) {
  const double speed = step.gop_per_second();
  return {{"name", step.spec.name()},
          {"recipe", step.spec.recipe},
          {"compute", compute_name(step.compute)},
          {"model", step.spec.model},
          {"batch", step.spec.batch},
          {"unit", "ms"},
          {"value", 1e3 * step.times.whole},
          {"forward_ms", 1e3 * step.times.phases.forward},
          {"backward_ms", 1e3 * step.times.phases.backward},
          {"update_ms", 1e3 * step.times.phases.update},
          {"gop_per_s", speed},
          {"ceiling", ceiling_name(step.ceiling)},
          {"share", or_null(results.share(step.ceiling, speed))},
          {"peak_live_bytes", step.peak_live_bytes}};
}

// A list of to_json(results, element).
template <typename Element>
OrderedJson list_json(const BenchResults& results, const std::vector<Element>& elements,
                      OrderedJson (*to_json)(const BenchResults&, const Element&)) {
  OrderedJson list = OrderedJson::array();
  for (const Element& element : elements) list.push_back(to_json(results, element));
  return list;
}

}  // namespace

std::optional<double> BenchResults::share(Ceiling ceiling, double value) const {
  for (const CeilingResult& result : ceilings) {
    if (result.ceiling == ceiling && result.value) return value / *result.value;
  }
  return {};
}

PassLimit BenchResults::limit(const PassResult& pass) const {
  const auto limit_of = [&](Ceiling ceiling, double bytes) {
    return PassLimit{ceiling, bytes, share(ceiling, 1e-9 * pass.parameters_per_second * bytes)};
  };
  const PassLimit reading = limit_of(Ceiling::kDramRead, pass.bytes_read_per_parameter);
  const PassLimit moving = limit_of(Ceiling::kDramUpdate, pass.bytes_per_parameter);
  return reading.share > moving.share ? reading : moving;
}

BenchResults run_bench(const BenchOptions& options) { return Suite(options).run(); }

std::string render_bench(const BenchResults& results) {
  const std::string rates = render_rates(results);
  return results.steps.empty() ? rates : rates + "\n" + render_steps(results);
}

std::string bench_json(const BenchResults& results) {
  const OrderedJson json = {{"tritgrad", TRITGRAD_VERSION},
                            {"cpu", processor()},
                            {"isa", kernels().name},
                            {"float_products", dense_product_library()},
                            {"threads", thread_count()},
                            {"rounds", results.rounds},
                            {"peak_rss_bytes", peak_rss_bytes()},
                            {"ceilings", list_json(results, results.ceilings, ceiling_json)},
                            {"passes", list_json(results, results.passes, pass_json)},
                            {"steps", list_json(results, results.steps, step_json)}};
  return json.dump(2);
}

}  // namespace tritgrad
