// The plainest update there is, w -= lr g on more memory than any cache: what memory allows an
// optimizer.
#pragma once

#include <cstdint>

#include "engine/memory/buffer.h"

namespace tritgrad {

class UpdateStream {
 public:
  UpdateStream();

  // One pass over all elements, on all threads.
  void run() const;
  // Moved by one pass: two reads and a write of four bytes an element.
  static constexpr double bytes() { return 12.0 * static_cast<double>(kElements); }

  // The memory of the weights, for a pass that only reads.
  std::span<const std::byte> weights() const { return w_.bytes(); }

 private:
  static constexpr std::int64_t kElements = 32 << 20;
  Buffer w_, g_;
};

}  // namespace tritgrad
