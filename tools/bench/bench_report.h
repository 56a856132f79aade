// Measurements as tables and as JSON.
#pragma once

#include <string>

#include "tools/bench/bench_suite.h"

namespace tritgrad {

std::string render_bench(const BenchResults& results);
// The schema is in FORMATS.md.
std::string bench_json(const BenchResults& results);

}  // namespace tritgrad
