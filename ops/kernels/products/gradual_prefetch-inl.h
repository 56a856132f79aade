// The memory of a prefetch list, asked for in shares between pieces of arithmetic.
#pragma once

#include <cstdint>

#include "engine/memory/prefetch.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

class GradualPrefetch {
 public:
  // `shares` calls of prefetch_some(), at least one, ask for all of the list, which must outlive
  // them.
  GradualPrefetch(const PrefetchList& memory, std::int64_t shares) : memory_(memory) {
    std::int64_t lines = 0;
    for (const PrefetchRows& runs : memory.planes) {
      lines += runs.count * ((runs.bytes + 2 * kCacheLine - 2) / kCacheLine);  // wherever it begins
    }
    // This is in 32 bits: a quotient in 64 takes a tenth of a small product on older processors.
    const auto n = static_cast<std::uint32_t>(shares > 1 ? shares : 1);
    lines_ = (static_cast<std::uint32_t>(lines) + n - 1) / n;
  }

  // Asks for the next share, into the second level, as it may be a while. It is inlined, because
  // g++ 12 drops calls of a function that does nothing else.
  [[gnu::always_inline]] void prefetch_some() {
    for_each_line([](const char* line)
                      __attribute__((always_inline)) { __builtin_prefetch(line, 0, 2); });
  }

  // Calls body(line) for the cache lines of the next share.
  template <typename Body>
  [[gnu::always_inline]] void for_each_line(const Body& body) {
    const char* line = line_;
    for (std::int64_t i = 0; i < lines_; ++i, line += kCacheLine) {
      if (line >= end_) {
        if (!begin_run()) return;
        line = line_;
      }
      body(line);
    }
    line_ = line;
  }

 private:
  // Goes to the next row that is not empty, from the line on that it begins in.
  bool begin_run() {
    for (; plane_ < PrefetchList::kPlanes; ++plane_, run_ = 0) {
      const PrefetchRows& runs = memory_.planes[plane_];
      if (run_ == runs.count || runs.bytes == 0) continue;
      const char* first = static_cast<const char*>(runs.first) + run_++ * runs.stride;
      line_ = first - reinterpret_cast<std::uintptr_t>(first) % kCacheLine;
      end_ = first + runs.bytes;
      return true;
    }
    lines_ = 0;
    return false;
  }

  const PrefetchList& memory_;
  std::int64_t lines_;  // of a share
  int plane_ = 0;
  std::int64_t run_ = 0;  // of the plane, the next one
  const char* line_ = nullptr;
  const char* end_ = nullptr;
};

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
