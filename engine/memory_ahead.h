// Memory that will be read soon, which whoever computes until then asks for little by little: the
// processor has some ten cache lines on their way at a time, and waits where more are asked for at
// once; and a tile of a matrix is no stream that its own prefetching would follow for long.
#pragma once

#include <cstdint>

namespace tritgrad {

inline constexpr std::int64_t kCacheLine = 64;

// Runs of as many bytes, `stride` bytes apart.
struct MemoryRuns {
  const void* first = nullptr;
  std::int64_t count = 0, bytes = 0, stride = 0;

  // Takes the first n off, or all.
  MemoryRuns take(std::int64_t n) {
    const MemoryRuns taken{first, n < count ? n : count, bytes, stride};
    first = static_cast<const char*>(first) + taken.count * stride;
    count -= taken.count;
    return taken;
  }
};

// What a tile of a parameter lies in: a plane, or two. Nothing unless told.
struct MemoryAhead {
  static constexpr int kPlanes = 2;

  MemoryRuns planes[kPlanes] = {};

  // Takes n rows off the top.
  MemoryAhead take(std::int64_t n) { return {{planes[0].take(n), planes[1].take(n)}}; }
};

}  // namespace tritgrad
