#include "tools/bench/ceilings.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "engine/clock.h"
#include "engine/kernels/kernels.h"
#include "engine/kernels/peak_loops.h"
#include "engine/kernels/updates.h"
#include "engine/memory/buffer.h"
#include "engine/memory/parallel.h"
#include "tools/report/number_text.h"
#include "tools/report/statistics.h"

namespace tritgrad {
namespace {

// Two arrays of this many floats, 128 MiB each, fit no cache.
constexpr std::int64_t kDramFloats = 32 << 20;

// The compiler must not leave reads out, so their results are added to this sum.
std::atomic<std::int64_t> g_read_sum{0};

double operations_per_second(const PeakLoop& loop) {
  constexpr std::int64_t kRounds = 20000;
  const int threads = thread_count();
  std::vector<std::int64_t> done(static_cast<std::size_t>(threads));
  const double seconds = seconds_per_call([&] {
    parallel_for(threads, [&](std::int64_t thread) {
      done[static_cast<std::size_t>(thread)] = loop.run(kRounds);
    });
  });
  return static_cast<double>(threads) * static_cast<double>(done[0]) / seconds;
}

// Every page of the array is written once: memory that was never touched is one page of zeros, and
// that page is in a cache.
Buffer dram_floats(float value) {
  Buffer memory(kDramFloats * sizeof(float), Category::kWorkspace);
  parallel_ranges(kDramFloats, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    std::fill(memory.as<float>() + begin, memory.as<float>() + end, value);
  });
  return memory;
}

double dram_read() {
  const Buffer memory = dram_floats(1.0f);
  const auto n = static_cast<std::int64_t>(memory.size());
  const double seconds = seconds_per_call([&] {
    parallel_ranges(n, 1 << 18, [&](std::int64_t begin, std::int64_t end) {
      g_read_sum += kernels().peak_loops.read(memory.bytes().data() + begin, end - begin);
    });
  });
  return static_cast<double>(n) / seconds;
}

// The plainest update there is, which shows what memory allows an optimizer.
double dram_update() {
  const Buffer w = dram_floats(1.0f), g = dram_floats(1e-3f);
  const double seconds = seconds_per_call([&] {
    parallel_ranges(kDramFloats, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      kernels().updates.descend(w.as<float>() + begin, g.as<float>() + begin, 1e-3f, end - begin);
    });
  });
  return 12.0 * static_cast<double>(kDramFloats) / seconds;
}

// A ceiling of computing has a loop, which also knows its note; one of memory has the other two.
struct CeilingRow {
  const char* name;
  const char* unit;
  PeakLoop (*loop)();
  const char* note = nullptr;
  double (*bytes_per_second)() = nullptr;
};

constexpr std::array<CeilingRow, kCeilingCount> kCeilingRows = {{
    {"fp32", "GFLOP/s", [] { return kernels().peak_loops.fp32; }},
    {"int8 (trits)", "GOP/s", [] { return kernels().peak_loops.int8_trits; }},
    {"DRAM read", "GB/s", nullptr, "128 MiB", dram_read},
    {"DRAM read+write", "GB/s", nullptr, "w -= lr g on 2 x 128 MiB, 12 bytes an element",
     dram_update},
}};

const CeilingRow& row_of(Ceiling ceiling) {
  return kCeilingRows.at(static_cast<std::size_t>(ceiling));
}

class CeilingMeasurement : public Measurement {
 public:
  explicit CeilingMeasurement(Ceiling ceiling) : row_(row_of(ceiling)) {}

  std::string name() const override { return row_.name; }
  std::set<Ceiling> ceilings() const override { return {}; }

  void measure() override {
    if (row_.loop == nullptr) {
      per_second_.push_back(row_.bytes_per_second());
    } else if (const PeakLoop loop = row_.loop(); loop.run != nullptr) {
      per_second_.push_back(operations_per_second(loop));
    }
  }

  BenchEntry entry(const CeilingValues&) const override {
    const double value = 1e-9 * median(per_second_);  // NaN of no numbers
    const char* note = row_.loop != nullptr ? row_.loop().instructions : row_.note;
    return {"ceilings",
            {row_.name, significant(value, 3), row_.unit, "", note},
            {{"name", row_.name}, {"unit", row_.unit}, {"value", value}, {"note", note}}};
  }

 private:
  const CeilingRow& row_;
  std::vector<double> per_second_;  // empty where this machine has no such thing
};

}  // namespace

std::unique_ptr<Measurement> measurement_of(Ceiling ceiling) {
  return std::make_unique<CeilingMeasurement>(ceiling);
}

const char* ceiling_name(Ceiling ceiling) { return row_of(ceiling).name; }

double share_of(const CeilingValues& ceilings, Ceiling ceiling, double value) {
  const auto found = ceilings.find(ceiling);
  return value / (found == ceilings.end() ? std::nan("") : found->second);
}

double seconds_per_call(const std::function<void()>& body) {
  constexpr double kShortest = 5e-3;
  body();
  for (int calls = 1;; calls *= 2) {
    const Clock::time_point start = Clock::now();
    for (int call = 0; call < calls; ++call) body();
    const double seconds = seconds_since(start);
    if (seconds >= kShortest) return seconds / calls;
  }
}

}  // namespace tritgrad
