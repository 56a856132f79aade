#include "engine/memory/arena.h"

#include <algorithm>

namespace tritgrad {
namespace {

constexpr std::size_t kSmallestBlock = 64 * 1024;

std::size_t round_up(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

void* Arena::allocate_bytes(std::size_t bytes) {
  bytes = round_up(std::max<std::size_t>(bytes, 1));
  if (blocks_.empty() || used_ + bytes > blocks_.back().size()) {
    used_before_ += used_;
    used_ = 0;
    blocks_.emplace_back(std::max(bytes, kSmallestBlock), category_);
  }
  void* result = blocks_.back().bytes().data() + used_;
  used_ += bytes;
  return result;
}

void Arena::reset() {
  if (blocks_.size() > 1) {
    const std::size_t total = round_up(used());
    blocks_.clear();
    blocks_.emplace_back(total, category_);
  }
  used_ = 0;
  used_before_ = 0;
}

}  // namespace tritgrad
