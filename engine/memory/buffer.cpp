#include "engine/memory/buffer.h"

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
// each begins some cache lines further on than the one before. They are pages of their own, given
// back at once when a buffer ends; what is never touched costs no memory. Buffers of medium size
// have pages of their own too, small ones.
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kOwnPages = std::size_t{256} << 10;
constexpr std::size_t kShift = 5 * kAlignment;
constexpr std::size_t kShifts = 12;  // 12 * 320 is just below a page

bool has_own_pages(std::size_t bytes) { return bytes >= kOwnPages; }

// Returns whole pages for a buffer, wherever in its first page it begins.
std::size_t page_bytes(std::size_t bytes) {
  return (bytes + kShifts * kShift + kPage - 1) / kPage * kPage;
}

// Returns zeroed pages, of a large buffer beginning at a huge one: more is asked for, and what lies
// around is given back. Null if there are none.
std::byte* map_pages(std::size_t bytes) {
  if (bytes < 2 * kHugePage) {
    void* pages =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? nullptr : static_cast<std::byte*>(pages);
  }
  void* mapped = ::mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* first = static_cast<std::byte*>(mapped);
  const std::size_t before =
      (kHugePage - reinterpret_cast<std::uintptr_t>(first) % kHugePage) % kHugePage;
  if (before > 0) ::munmap(first, before);
  ::munmap(first + before + bytes, kHugePage - before);
  ::madvise(first + before, bytes, MADV_HUGEPAGE);
  return first + before;
}

std::byte* allocate_zeros(std::size_t bytes) {
  if (!has_own_pages(bytes)) {
    void* data = ::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow);
    if (data != nullptr) std::memset(data, 0, bytes);
    return static_cast<std::byte*>(data);
  }
  static std::atomic<std::size_t> count{0};
  std::byte* pages = map_pages(page_bytes(bytes));
  if (pages == nullptr) return nullptr;
  return pages + count.fetch_add(1, std::memory_order_relaxed) % kShifts * kShift;
}

void free_bytes(std::byte* data, std::size_t bytes) {
  if (!has_own_pages(bytes)) return ::operator delete (data, std::align_val_t{kAlignment});
  ::munmap(data - reinterpret_cast<std::uintptr_t>(data) % kPage, page_bytes(bytes));
}

}  // namespace

Buffer::Buffer(std::size_t bytes, Category category) : size_(bytes), category_(category) {
  if (bytes == 0) return;
  data_ = allocate_zeros(bytes);
  if (data_ == nullptr) {
    throw OutOfMemory(concat("out of memory: ", bytes, " bytes of ", category_name(category),
                             " cannot be allocated; use a smaller model or batch"));
  }
  ledger::acquire(category, bytes);
}

Buffer Buffer::borrow(std::span<const std::byte> bytes) {
  Buffer buffer;
  buffer.data_ = const_cast<std::byte*>(bytes.data());
  buffer.size_ = bytes.size();
  buffer.is_borrowed_ = true;
  return buffer;
}

Buffer::~Buffer() {
  if (data_ == nullptr || is_borrowed_) return;
  ledger::release(category_, size_);
  free_bytes(data_, size_);
}

}  // namespace tritgrad
