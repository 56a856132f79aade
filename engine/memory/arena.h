// Bump memory for one training step: allocate freely, forget everything at once, or all that was
// allocated since a place.
//
// The first step grows the arena block by block, by no more than is asked for, as the peak of
// memory is what users are told; reset() then joins the blocks into one, so that later steps of the
// same size touch the heap no more.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "engine/memory/buffer.h"

namespace tritgrad {

class Arena {
 public:
  explicit Arena(Category category) : category_(category) {}

  // Returns memory for n objects, not initialised, aligned to 64; valid until reset().
  template <typename T>
  T* allocate(std::int64_t n) {
    static_assert(std::is_trivially_destructible_v<T>, "the arena never runs destructors");
    return static_cast<T*>(allocate_bytes(static_cast<std::size_t>(n) * sizeof(T)));
  }

  void reset();
  std::size_t used() const { return used_before_ + used_; }

  // Where the arena is: between what was allocated before and what comes after.
  struct Place {
    std::size_t blocks, used, used_before;
  };
  Place place() const { return {blocks_.size(), used_, used_before_}; }
  // Forgets what was allocated since place() returned this place; places in between are void.
  void go_back(const Place& place);

 private:
  void* allocate_bytes(std::size_t bytes);

  Category category_;
  std::vector<Buffer> blocks_;
  std::size_t used_ = 0;         // in the last block
  std::size_t used_before_ = 0;  // in all earlier blocks
  std::size_t most_used_ = 0;    // since reset()
};

}  // namespace tritgrad
