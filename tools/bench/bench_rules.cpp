// How fast the optimizer moves parameters: every rule on its natural formats, millions of
// parameters per second, beside what the machine's memory allows.
//
//     build/release/bench_rules                      a table
//     build/release/bench_rules --benchmark_filter=adamw --benchmark_repetitions=7
//
// A matrix of 4096 x 4096 does not fit any cache, so an update reads and writes main memory.
// `B/param` is what it must move at least: the fp32 gradient read once, weights and moments read
// and written once. `ceiling` is the share of the bandwidth that a plain loop (w -= lr g on three
// times as much memory as any cache) reaches in the same process, measured before each row.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>

#include "engine/kernel_table.h"
#include "engine/parallel.h"
#include "optim/optimizer.h"

namespace tritgrad {
namespace {

constexpr std::int64_t kSide = 4096;

struct Case {
  const char* name;
  RuleKind rule;
  FormatKind weight;
  FormatKind m = FormatKind::kFp32;
  FormatKind v = FormatKind::kFp32;
  EcoForm eco = EcoForm::kOff;
  Rounding moments = Rounding::kNearest;
};

constexpr Case kCases[] = {
    {"sgd/fp32", RuleKind::kSgd, FormatKind::kFp32},
    {"adamw/fp32", RuleKind::kAdamw, FormatKind::kFp32},
    {"adam/fp32", RuleKind::kAdam, FormatKind::kFp32},
    {"lion/fp32", RuleKind::kLion, FormatKind::kFp32},
    {"sign/fp32", RuleKind::kSign, FormatKind::kFp32},
    {"microadam/bf16", RuleKind::kMicroadam, FormatKind::kBf16},
    {"flash-adamw (split24, companded8, root8)", RuleKind::kAdamw, FormatKind::kSplit24,
     FormatKind::kCompanded8, FormatKind::kRoot8},
    {"flash-lion (split24, companded8)", RuleKind::kLion, FormatKind::kSplit24,
     FormatKind::kCompanded8},
    {"flash-sgd (split24, companded8)", RuleKind::kSgdw, FormatKind::kSplit24,
     FormatKind::kCompanded8},
    {"adamw/ternary_master", RuleKind::kAdamw, FormatKind::kTernaryMaster},
    {"votes (sign/ternary)", RuleKind::kSign, FormatKind::kTernary},
    {"latent8 (normalized)", RuleKind::kNormalized, FormatKind::kLatent8, FormatKind::kFp32,
     FormatKind::kScalar},
    {"latent6 (normalized)", RuleKind::kNormalized, FormatKind::kLatent6, FormatKind::kFp32,
     FormatKind::kScalar},
    {"latent4 (normalized)", RuleKind::kNormalized, FormatKind::kLatent4, FormatKind::kFp32,
     FormatKind::kScalar},
    {"trits (normalized)", RuleKind::kNormalized, FormatKind::kTrits, FormatKind::kFp32,
     FormatKind::kScalar},
    {"eco (adamw/trits, int8, scalar)", RuleKind::kAdamw, FormatKind::kTrits, FormatKind::kInt8,
     FormatKind::kScalar, EcoForm::kRescaled, Rounding::kStochastic},
    {"microadam/trits", RuleKind::kMicroadam, FormatKind::kTrits},
    {"adamw/fp8", RuleKind::kAdamw, FormatKind::kFp8},
    {"adamw/int4", RuleKind::kAdamw, FormatKind::kInt4},
};

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

// Bytes per second of w -= lr g: two reads and a write, on one core or all.
double measure_ceiling() {
  constexpr std::int64_t kElements = 32 << 20;
  static Buffer w(kElements * sizeof(float), Category::kWorkspace);
  static Buffer g(kElements * sizeof(float), Category::kWorkspace);
  double best = 1e30;
  for (int repetition = 0; repetition < 5; ++repetition) {
    const auto start = std::chrono::steady_clock::now();
    parallel_ranges(kElements, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      kernels().descend(w.as<float>() + begin, g.as<float>() + begin, 1e-3f, end - begin);
    });
    best = std::min(best, seconds(std::chrono::steady_clock::now() - start));
  }
  return 12.0 * static_cast<double>(kElements) / best;
}

GroupSpec group_of(const Case& c) {
  GroupSpec group;
  group.rule.kind = c.rule;
  group.rule.momentum = 0.9;
  group.rule.weight_decay = c.rule == RuleKind::kNormalized ? 0.0 : 0.01;
  group.m.kind = c.m;
  group.v.kind = c.v;
  group.m.rounding = group.v.rounding = c.moments;
  group.eco = c.eco;
  group.lr = 1e-3;
  return group;
}

void bench_step(benchmark::State& state, const Case& c) {
  FormatSpec format;
  format.kind = c.weight;
  if (c.weight == FormatKind::kSplit24) format.rounding = Rounding::kNearest;
  const GroupSpec group = group_of(c);
  ParameterStore store;
  Parameter& w =
      store.add({"w", Role::kWeight, {kSide, kSide}, format, {Initial::Kind::kUniform, 1.0f}}, 1);
  store.keep_gradients();
  for (std::int64_t i = 0; i < w.grad.size(); ++i)
    w.grad.data[i] = 1e-3f * random_normal({2, 0, 0}, static_cast<std::uint64_t>(i));
  Optimizer optimizer(
      store, [&](const ParameterSpec&) { return group; }, 1000000, 1);
  optimizer.step();
  const double ceiling = measure_ceiling();
  for (auto _ : state) optimizer.step();

  const double size = static_cast<double>(w.shape().size());
  const double persistent =
      static_cast<double>(w.storage().bytes() + Optimizer::state_bytes(w.spec(), group)) / size;
  const double moved = 4.0 + 2.0 * persistent;
  using benchmark::Counter;
  state.counters["Mparam/s"] = Counter(size * 1e-6, Counter::kIsIterationInvariantRate);
  state.counters["B/param"] = moved;
  state.counters["ceiling_GB/s"] = ceiling * 1e-9;
  state.counters["ceiling"] = Counter(moved * size / ceiling, Counter::kIsIterationInvariantRate);
}

}  // namespace
}  // namespace tritgrad

int main(int argc, char** argv) {
  for (const tritgrad::Case& c : tritgrad::kCases) {
    benchmark::RegisterBenchmark(c.name, tritgrad::bench_step, c)
        ->Unit(benchmark::kMillisecond)
        ->MeasureProcessCPUTime()
        ->UseRealTime();
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
