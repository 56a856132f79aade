#include "optim/parallel/gathered_parts.h"

#include <cstring>

namespace tritgrad {

std::int64_t GatheredParts::result_bytes(int owner) const {
  const int count = Parts::of_rank(owner, ranks_, parts_).count();
  return count * n_ * static_cast<std::int64_t>(sizeof(float));
}

void GatheredParts::write_result(std::byte* out) {
  std::memcpy(out, part(Parts::of_rank(rank_, ranks_, parts_).begin),
              static_cast<std::size_t>(result_bytes(rank_)));
}

void GatheredParts::read_result(int owner, const std::byte* in) {
  std::memcpy(part(Parts::of_rank(owner, ranks_, parts_).begin), in,
              static_cast<std::size_t>(result_bytes(owner)));
}

}  // namespace tritgrad
