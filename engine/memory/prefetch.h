// Asking for memory that will be read soon: some cache lines in each of many rows, which lie pages
// apart, so that the processor's own prefetching does not see them coming.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tritgrad {

inline constexpr std::int64_t kCacheLine = 64;

// Rows of as many bytes, `stride` bytes apart.
struct PrefetchRows {
  const void* first = nullptr;
  std::int64_t count = 0, bytes = 0, stride = 0;

  // Takes the first n off, or all.
  PrefetchRows take(std::int64_t n) {
    const PrefetchRows taken{first, n < count ? n : count, bytes, stride};
    first = static_cast<const char*>(first) + taken.count * stride;
    count -= taken.count;
    return taken;
  }
};

// The memory that a piece of a parameter and of its moments lies in; nothing unless told.
//
// Whoever computes until it is read asks for it little by little: the processor has some ten cache
// lines on their way at a time, and waits where more are asked for at once; and a piece of a matrix
// is no stream that its own prefetching would follow for long.
struct PrefetchList {
  static constexpr int kPlanes = 3;

  PrefetchRows planes[kPlanes] = {};

  // Takes n rows off the top.
  PrefetchList take(std::int64_t n) {
    return {{planes[0].take(n), planes[1].take(n), planes[2].take(n)}};
  }
  // Adds the memory of another piece, as long as there is room for its planes.
  void add(const PrefetchList& other) {
    int free = 0;
    for (const PrefetchRows& runs : other.planes) {
      while (free < kPlanes && planes[free].count > 0) ++free;
      if (free < kPlanes && runs.count > 0) planes[free] = runs;
    }
  }
};

// The cache to ask for: the second level takes what is needed some time from now, the first what
// comes next, no more than a few KiB.
enum class Near { kSoon = 2, kNext = 3 };

template <Near kNear = Near::kSoon>
inline void prefetch(const void* data, std::int64_t bytes) {
  const auto* first = static_cast<const std::byte*>(data);
  const auto before =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data) % kCacheLine);
  // This is an empty instruction: g++ 12 takes a function that does nothing but ask for memory for
  // one without effect, and drops its calls.
  asm volatile("");
  for (std::int64_t i = -before; i < bytes; i += kCacheLine) {
    __builtin_prefetch(first + i, 0, static_cast<int>(kNear));
  }
}

}  // namespace tritgrad
