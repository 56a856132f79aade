// Asking for memory that will be read soon: some cache lines in each of many rows, which lie pages
// apart, so that the processor's own prefetching does not see them coming. What a product may ask
// for by the way: engine/memory/memory_ahead.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/memory/memory_ahead.h"

namespace tritgrad {

// Into which cache: the second level takes what is needed some time from now, the first what comes
// next, no more than a few KiB.
enum class Near { kSoon = 2, kNext = 3 };

template <Near kNear = Near::kSoon>
inline void prefetch(const void* data, std::int64_t bytes) {
  const auto* first = static_cast<const std::byte*>(data);
  const auto before =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data) % kCacheLine);
  // An empty instruction: g++ 12 takes a function that does nothing but ask for memory for one
  // without effect, and drops its calls.
  asm volatile("");
  for (std::int64_t i = -before; i < bytes; i += kCacheLine) {
    __builtin_prefetch(first + i, 0, static_cast<int>(kNear));
  }
}

}  // namespace tritgrad
