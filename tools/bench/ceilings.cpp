#include "tools/bench/ceilings.h"

#include <array>
#include <atomic>

#include "engine/kernels/peak_loops.h"
#include "engine/memory/parallel.h"
#include "tools/bench/timing.h"
#include "tools/bench/update_stream.h"
#include "tools/report/statistics.h"

namespace tritgrad {
namespace {

struct Row {
  const char* name;
  const char* unit;
};
constexpr std::array<Row, kCeilingCount> kCeilingRows = {{
    {"fp32", "GFLOP/s"},
    {"bf16", "GFLOP/s"},
    {"int8 (trits)", "GOP/s"},
    {"int8 x int8", "GOP/s"},
    {"L2 read", "GB/s"},
    {"DRAM read", "GB/s"},
    {"DRAM read+write", "GB/s"},
}};

const Row& row(Ceiling ceiling) { return kCeilingRows.at(static_cast<std::size_t>(ceiling)); }

// Half of a second-level cache, or less.
constexpr std::int64_t kL2Bytes = 512 << 10;

// What was read goes here, so that reading is not left out.
std::atomic<std::int64_t> g_seen{0};

PeakLoop loop_of(Ceiling ceiling) {
  switch (ceiling) {
    case Ceiling::kFp32:
      return kernels().peak_loops.fp32;
    case Ceiling::kBf16:
      return bf16_peak_loop();
    case Ceiling::kInt8Trits:
      return kernels().peak_loops.int8_trits;
    default:
      return kernels().peak_loops.int8_int8;
  }
}

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

double l2_bytes_per_second() {
  const int threads = thread_count();
  constexpr int kTimes = 16;
  Buffer memory(static_cast<std::size_t>(threads * kL2Bytes), Category::kWorkspace);
  std::fill(memory.bytes().begin(), memory.bytes().end(), std::byte{1});
  const double seconds = seconds_per_call([&] {
    parallel_for(threads, [&](std::int64_t thread) {
      for (int time = 0; time < kTimes; ++time) {
        g_seen += kernels().peak_loops.read(memory.bytes().data() + thread * kL2Bytes, kL2Bytes);
      }
    });
  });
  return static_cast<double>(kTimes * threads * kL2Bytes) / seconds;
}

double dram_read_bytes_per_second() {
  const UpdateStream stream;
  const std::span<const std::byte> memory = stream.weights();
  const auto n = static_cast<std::int64_t>(memory.size());
  const double seconds = seconds_per_call([&] {
    parallel_ranges(n, 1 << 18, [&](std::int64_t begin, std::int64_t end) {
      g_seen += kernels().peak_loops.read(memory.data() + begin, end - begin);
    });
  });
  return static_cast<double>(n) / seconds;
}

double dram_update_bytes_per_second() {
  const UpdateStream stream;
  return UpdateStream::bytes() / seconds_per_call([&] { stream.run(); });
}

}  // namespace

const char* ceiling_name(Ceiling ceiling) { return row(ceiling).name; }
const char* ceiling_unit(Ceiling ceiling) { return row(ceiling).unit; }

CeilingCase::CeilingCase(Ceiling ceiling) : ceiling_(ceiling) {
  switch (ceiling) {
    case Ceiling::kL2Read:
      note_ = "512 KiB on each thread";
      break;
    case Ceiling::kDramRead:
      note_ = "128 MiB";
      break;
    case Ceiling::kDramUpdate:
      note_ = "w -= lr g on 2 x 128 MiB, 12 bytes an element";
      break;
    default:
      note_ = loop_of(ceiling).instructions;
  }
}

void CeilingCase::measure() {
  switch (ceiling_) {
    case Ceiling::kL2Read:
      samples_.push_back(l2_bytes_per_second());
      break;
    case Ceiling::kDramRead:
      samples_.push_back(dram_read_bytes_per_second());
      break;
    case Ceiling::kDramUpdate:
      samples_.push_back(dram_update_bytes_per_second());
      break;
    default:
      if (const PeakLoop loop = loop_of(ceiling_); loop.run != nullptr) {
        samples_.push_back(operations_per_second(loop));
      }
  }
}

CeilingResult CeilingCase::result() const {
  CeilingResult result{ceiling_, {}, note_};
  if (!samples_.empty()) result.value = 1e-9 * median(samples_);
  return result;
}

}  // namespace tritgrad
