// Bytes on their way to or from a rank, in memory that is kept from step to step.
#pragma once

#include "engine/memory/buffer.h"

namespace tritgrad {

class Message {
 public:
  // What it held before is lost.
  void resize(std::size_t bytes) {
    if (bytes > buffer_.size()) buffer_ = Buffer(bytes, Category::kWorkspace);
    size_ = bytes;
  }
  std::byte* data() const { return buffer_.as<std::byte>(); }
  std::span<std::byte> bytes() const { return buffer_.bytes().first(size_); }

 private:
  Buffer buffer_;
  std::size_t size_ = 0;
};

}  // namespace tritgrad
