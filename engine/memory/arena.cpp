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
  most_used_ = std::max(most_used_, used());
  return result;
}

void Arena::go_back(const Place& place) {
  blocks_.resize(place.blocks);
  used_ = place.used;
  used_before_ = place.used_before;
}

void Arena::reset() {
  const std::size_t in_one_piece = blocks_.size() == 1 ? blocks_.back().size() : 0;
  if (most_used_ > in_one_piece) {
    blocks_.clear();
    blocks_.emplace_back(round_up(most_used_), category_);
  }
  used_ = 0;
  used_before_ = 0;
  most_used_ = 0;
}

}  // namespace tritgrad
