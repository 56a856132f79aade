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

// What a tile of a parameter and of its moments lies in. Nothing unless told.
struct MemoryAhead {
  static constexpr int kPlanes = 3;

  MemoryRuns planes[kPlanes] = {};

  // Takes n rows off the top.
  MemoryAhead take(std::int64_t n) {
    return {{planes[0].take(n), planes[1].take(n), planes[2].take(n)}};
  }
  // Adds another tile's, as long as there is room for its planes.
  void add(const MemoryAhead& other) {
    int free = 0;
    for (const MemoryRuns& runs : other.planes) {
      while (free < kPlanes && planes[free].count > 0) ++free;
      if (free < kPlanes && runs.count > 0) planes[free] = runs;
    }
  }
};

}  // namespace tritgrad
