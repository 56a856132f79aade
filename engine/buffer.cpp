#include "engine/buffer.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>

#include "engine/check.h"

namespace tritgrad {

namespace {

// An update walks through several large buffers at once. With pages of 4 KiB it misses the TLB in
// all of them, so large buffers ask for huge pages (advice: without them all works, slower); and if
// they all began at the same place of a page, a load would seem to depend on every store nearby, so
// each begins some cache lines further on than the one before.
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kShift = 5 * kAlignment;
constexpr std::size_t kShifts = 13;  // 13 * 320 is just above a page

bool is_large(std::size_t bytes) { return bytes >= 2 * kHugePage; }

std::byte* allocate(std::size_t bytes) {
  if (!is_large(bytes)) {
    return static_cast<std::byte*>(
        ::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow));
  }
  static std::atomic<std::size_t> count{0};
  const std::size_t shift = count.fetch_add(1, std::memory_order_relaxed) % kShifts * kShift;
  void* pages = ::operator new (bytes + shift, std::align_val_t{kHugePage}, std::nothrow);
  if (pages == nullptr) return nullptr;
  ::madvise(pages, bytes + shift, MADV_HUGEPAGE);
  return static_cast<std::byte*>(pages) + shift;
}

void free_bytes(std::byte* data, std::size_t bytes) {
  if (!is_large(bytes)) return ::operator delete (data, std::align_val_t{kAlignment});
  data -= reinterpret_cast<std::uintptr_t>(data) % kHugePage;
  ::operator delete (data, std::align_val_t{kHugePage});
}

}  // namespace

Buffer::Buffer(std::size_t bytes, Category category) : size_(bytes), category_(category) {
  if (bytes == 0) return;
  data_ = allocate(bytes);
  check(data_ != nullptr, "out of memory: ", bytes, " bytes of ", category_name(category),
        " cannot be allocated; use a smaller model or batch");
  std::memset(data_, 0, bytes);
  ledger::acquire(category, bytes);
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  ledger::release(category_, size_);
  free_bytes(data_, size_);
}

}  // namespace tritgrad
