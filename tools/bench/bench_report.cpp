#include "tools/bench/bench_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/kernels/kernels.h"
#include "engine/memory/parallel.h"
#include "ops/products/dense_product.h"
#include "tools/report/system_info.h"
#include "tools/report/table.h"

namespace tritgrad {
namespace {

using OrderedJson = nlohmann::ordered_json;

template <typename T>
OrderedJson or_null(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

std::string share_text(const std::optional<double>& share) {
  return share ? percent(*share, 0) : std::string(kMissing);
}

double gop_per_second(const StepResult& step) { return 1e-9 * step.operations / step.times.whole; }

std::string render_rates(const BenchResults& results) {
  Table table(
      {{"what"}, {"speed", Align::kRight}, {"unit"}, {"share", Align::kRight}, {"of, or by"}});
  if (!results.ceilings.empty()) table.add_section("ceilings");
  for (const CeilingResult& each : results.ceilings) {
    table.add_row({ceiling_name(each.ceiling),
                   each.value ? significant(*each.value, 3) : std::string(kMissing),
                   ceiling_unit(each.ceiling), "", each.note});
  }
  if (!results.kernels.empty()) table.add_section("kernels, on data in caches");
  for (const KernelResult& each : results.kernels) {
    std::vector<std::string> row = {each.name, significant(each.value, 3), each.unit, "", ""};
    if (each.ceiling) {
      row[3] = share_text(results.share(*each.ceiling, each.value));
      row[4] = ceiling_name(*each.ceiling);
    }
    table.add_row(row);
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
    const double speed = gop_per_second(each);
    table.add_row(
        {each.spec.recipe, milliseconds(each.times.whole), milliseconds(each.times.phases.forward),
         milliseconds(each.times.phases.backward), milliseconds(each.times.phases.update),
         significant(speed, 3), share_text(results.share(each.ceiling, speed)),
         ceiling_name(each.ceiling), human_bytes(static_cast<double>(each.peak_live_bytes))});
  }
  return table.render() +
         "update: of recipes that compute a gradient as it is read (int8), with that product.\n";
}

OrderedJson ceilings_json(const BenchResults& results) {
  OrderedJson list = OrderedJson::array();
  for (const CeilingResult& each : results.ceilings) {
    list.push_back({{"name", ceiling_name(each.ceiling)},
                    {"unit", ceiling_unit(each.ceiling)},
                    {"value", or_null(each.value)},
                    {"note", each.note}});
  }
  return list;
}

OrderedJson kernels_json(const BenchResults& results) {
  OrderedJson list = OrderedJson::array();
  for (const KernelResult& each : results.kernels) {
    OrderedJson ceiling, share;
    if (each.ceiling) {
      ceiling = ceiling_name(*each.ceiling);
      share = or_null(results.share(*each.ceiling, each.value));
    }
    list.push_back({{"name", each.name},
                    {"unit", each.unit},
                    {"value", each.value},
                    {"ceiling", ceiling},
                    {"share", share}});
  }
  return list;
}

OrderedJson passes_json(const BenchResults& results) {
  OrderedJson list = OrderedJson::array();
  for (const PassResult& each : results.passes) {
    const PassLimit limit = results.limit(each);
    list.push_back({{"name", each.name},
                    {"unit", "Mparam/s"},
                    {"value", 1e-6 * each.parameters_per_second},
                    {"bytes_read_per_parameter", each.bytes_read_per_parameter},
                    {"bytes_per_parameter", each.bytes_per_parameter},
                    {"ceiling", ceiling_name(limit.ceiling)},
                    {"share", or_null(limit.share)}});
  }
  return list;
}

OrderedJson steps_json(const BenchResults& results) {
  OrderedJson list = OrderedJson::array();
  for (const StepResult& each : results.steps) {
    const double speed = gop_per_second(each);
    list.push_back({{"name", each.spec.name()},
                    {"recipe", each.spec.recipe},
                    {"compute", compute_name(each.compute)},
                    {"model", each.spec.model},
                    {"batch", each.spec.batch},
                    {"unit", "ms"},
                    {"value", 1e3 * each.times.whole},
                    {"forward_ms", 1e3 * each.times.phases.forward},
                    {"backward_ms", 1e3 * each.times.phases.backward},
                    {"update_ms", 1e3 * each.times.phases.update},
                    {"gop_per_s", speed},
                    {"ceiling", ceiling_name(each.ceiling)},
                    {"share", or_null(results.share(each.ceiling, speed))},
                    {"peak_live_bytes", each.peak_live_bytes}});
  }
  return list;
}

}  // namespace

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
                            {"ceilings", ceilings_json(results)},
                            {"kernels", kernels_json(results)},
                            {"passes", passes_json(results)},
                            {"steps", steps_json(results)}};
  return json.dump(2);
}

}  // namespace tritgrad
