// How n elements are divided among ranks: equal chunks of whole bytes of bits, the last ones
// shorter or empty. The owner of a chunk adds up what the ranks have of it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tritgrad {

struct Partition {
  std::int64_t n;
  int ranks;

  std::int64_t chunk() const {
    const std::int64_t each = (n + ranks - 1) / ranks;
    return (each + 7) / 8 * 8;
  }
  std::int64_t begin(int rank) const { return std::min(n, rank * chunk()); }
  std::int64_t size(int rank) const { return begin(rank + 1) - begin(rank); }
};

}  // namespace tritgrad
