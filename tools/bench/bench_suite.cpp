#include "tools/bench/bench_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/check.h"
#include "engine/text.h"
#include "tools/bench/kernel_cases.h"
#include "tools/bench/optimizer_passes.h"
#include "tools/cli/interrupt.h"

namespace tritgrad {
namespace {

const std::vector<std::string> kGroups = {"ceilings", "kernels", "passes", "steps"};

bool asked_for(const BenchOptions& options, const char* group) {
  return std::find(options.groups.begin(), options.groups.end(), group) != options.groups.end();
}

template <typename T>
void check_no_repeats(const char* option, const std::vector<T>& values) {
  for (const T& value : values) {
    check(std::count(values.begin(), values.end(), value) == 1, option, ": '", value,
          "' is named twice");
  }
}

void check_options(const BenchOptions& options) {
  for (const std::string& group : options.groups) {
    check(std::find(kGroups.begin(), kGroups.end(), group) != kGroups.end(), "--only: '", group,
          "' is no group of benchmarks", did_you_mean(group, kGroups));
  }
  check_no_repeats("--only", options.groups);
  check_no_repeats("--model", options.models);
  check_no_repeats("--recipe", options.recipes);
  check_no_repeats("--batch", options.batches);
}

class Suite {
 public:
  explicit Suite(const BenchOptions& options) : rounds_(options.rounds) {
    check_options(options);
    std::set<Ceiling> wanted;
    if (asked_for(options, "ceilings")) {
      for (int i = 0; i < kCeilingCount; ++i) wanted.insert(static_cast<Ceiling>(i));
    }
    if (asked_for(options, "kernels")) {
      for (KernelSpec& spec : kernel_specs()) {
        if (spec.ceiling) wanted.insert(*spec.ceiling);
        kernels_.emplace_back(std::move(spec));
      }
    }
    if (asked_for(options, "passes")) {
      wanted.insert({Ceiling::kDramRead, Ceiling::kDramUpdate});
      for (const PassSpec& spec : pass_specs()) passes_.emplace_back(spec);
    }
    if (asked_for(options, "steps")) {
      for (const std::string& model : options.models) {
        for (const std::int64_t batch : options.batches) {
          for (const std::string& recipe : options.recipes) {
            steps_.emplace_back(StepSpec{recipe, model, batch});
            wanted.insert(steps_.back().ceiling());
          }
        }
      }
    }
    for (const Ceiling ceiling : wanted) ceilings_.emplace_back(ceiling);
  }

  BenchResults run(StatusLine& status) {
    const InterruptWatch watch;
    for (int round = 1; round <= rounds_; ++round) {
      const auto measure_all = [&](auto& cases) {
        for (auto& each : cases) {
          status.show(fmt::format("round {}/{}  {}", round, rounds_, each.name()));
          each.measure();
          watch.end_if_interrupted("nothing was measured to the end, so nothing is reported");
        }
      };
      measure_all(ceilings_);
      measure_all(kernels_);
      measure_all(passes_);
      measure_all(steps_);
    }
    BenchResults results;
    results.rounds = rounds_;
    for (const CeilingCase& each : ceilings_) results.ceilings.push_back(each.result());
    for (const KernelCase& each : kernels_) {
      results.kernels.push_back({each.name(), each.spec().unit, each.value(), each.spec().ceiling});
    }
    for (const PassCase& each : passes_) {
      results.passes.push_back({each.name(), each.parameters_per_second(),
                                each.bytes_read_per_parameter(), each.bytes_per_parameter()});
    }
    for (const StepCase& each : steps_) results.steps.push_back(each.result());
    return results;
  }

 private:
  int rounds_;
  std::vector<CeilingCase> ceilings_;
  std::vector<KernelCase> kernels_;
  std::vector<PassCase> passes_;
  std::vector<StepCase> steps_;
};

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

BenchResults run_bench(const BenchOptions& options, StatusLine& status) {
  return Suite(options).run(status);
}

}  // namespace tritgrad
