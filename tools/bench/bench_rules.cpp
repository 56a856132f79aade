// How fast the optimizer moves parameters: every rule on its natural formats, millions of
// parameters per second, beside what the machine's memory allows.
//
//     build/release/bench_rules                      a table
//     build/release/bench_rules --benchmark_filter=adamw --benchmark_repetitions=7
//
// A matrix of 4096 x 4096 does not fit any cache, so an update reads and writes main memory.
// `B/param` is what it must move at least (OptimizerPass::bytes_per_parameter). `ceiling` is the
// share of the bandwidth that a plain loop (UpdateStream) reaches in the same process, measured
// before each row.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "tools/bench/optimizer_passes.h"
#include "tools/bench/timing.h"
#include "tools/bench/update_stream.h"

namespace tritgrad {
namespace {

// Bytes per second, on one core or all: the best of five passes.
double measure_ceiling() {
  static const UpdateStream stream;
  double best = 1e30;
  for (int repetition = 0; repetition < 5; ++repetition) {
    const Clock::time_point start = Clock::now();
    stream.run();
    best = std::min(best, seconds_since(start));
  }
  return UpdateStream::bytes() / best;
}

void bench_step(benchmark::State& state, const PassSpec& spec) {
  OptimizerPass pass(spec);
  const double ceiling = measure_ceiling();
  for (auto _ : state) pass.run();

  const double moved = pass.bytes_per_parameter();
  const double size = OptimizerPass::parameters();
  using benchmark::Counter;
  state.counters["Mparam/s"] = Counter(size * 1e-6, Counter::kIsIterationInvariantRate);
  state.counters["B/param"] = moved;
  state.counters["ceiling_GB/s"] = ceiling * 1e-9;
  state.counters["ceiling"] = Counter(moved * size / ceiling, Counter::kIsIterationInvariantRate);
}

}  // namespace
}  // namespace tritgrad

int main(int argc, char** argv) {
  for (const tritgrad::PassSpec& spec : tritgrad::pass_specs()) {
    benchmark::RegisterBenchmark(spec.name, tritgrad::bench_step, spec)
        ->Unit(benchmark::kMillisecond)
        ->MeasureProcessCPUTime()
        ->UseRealTime();
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
