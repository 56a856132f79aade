// A vector of what belongs to data sets, counted by the ledger as data: labels, numbers of rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

#include "engine/memory/ledger.h"

namespace tritgrad {

// Tells the ledger what std::allocator gives and takes back.
template <typename T>
struct DataAllocator {
  using value_type = T;

  DataAllocator() = default;
  template <typename Other>
  DataAllocator(const DataAllocator<Other>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(std::size_t n) {
    T* memory = std::allocator<T>().allocate(n);
    ledger::acquire(Category::kData, n * sizeof(T));
    return memory;
  }
  void deallocate(T* memory, std::size_t n) {
    ledger::release(Category::kData, n * sizeof(T));
    std::allocator<T>().deallocate(memory, n);
  }

  friend bool operator==(const DataAllocator&, const DataAllocator&) { return true; }
};

template <typename T>
using DataVector = std::vector<T, DataAllocator<T>>;

// Compares the elements with those of a vector that is not counted.
template <typename T>
bool operator==(const DataVector<T>& a, const std::vector<std::type_identity_t<T>>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

}  // namespace tritgrad
