// Owned bytes, zeroed, aligned to 64 (a cache line and the widest vector), counted by the ledger;
// or bytes of somebody else, as they are.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "engine/memory/ledger.h"

namespace tritgrad {

inline constexpr std::size_t kAlignment = 64;

class Buffer {
 public:
  Buffer() = default;
  // Throws Error when the memory cannot be had.
  Buffer(std::size_t bytes, Category category);
  // Lends bytes that outlive it, are not written to, and are not counted: they are another's.
  static Buffer borrow(std::span<const std::byte> bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::size_t size() const { return size_; }
  bool is_borrowed() const { return is_borrowed_; }
  std::span<std::byte> bytes() const { return {data_, size_}; }

  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(category_, other.category_);
    std::swap(is_borrowed_, other.is_borrowed_);
  }

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  Category category_ = Category::kWorkspace;
  bool is_borrowed_ = false;
};

}  // namespace tritgrad
