// Measurements as tables and as JSON.
#pragma once

#include <string>

#include "tools/bench/bench_suite.h"

namespace tritgrad {

// What was measured on: "tritgrad 0.1.0, avx512 kernels, 1 thread, PROCESSOR".
std::string bench_machine();
std::string render_bench(const BenchResults& results);
// The schema is in FORMATS.md.
std::string bench_json(const BenchResults& results);

}  // namespace tritgrad
