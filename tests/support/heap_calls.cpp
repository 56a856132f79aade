#include "tests/support/heap_calls.h"

#ifndef TRITGRAD_SANITIZED

#include <cerrno>
#include <cstdlib>

namespace tritgrad::test {

std::atomic<std::int64_t> g_heap_calls{0};
std::atomic<std::int64_t> g_heap_bytes{0};

namespace {

void note(std::size_t bytes) {
  ++g_heap_calls;
  g_heap_bytes += static_cast<std::int64_t>(bytes);
}

}  // namespace

}  // namespace tritgrad::test

// glibc's own entry points, in front of which the counter stands.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  tritgrad::test::note(size);
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  tritgrad::test::note(count * size);
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  tritgrad::test::note(size);
  return __libc_realloc(memory, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  tritgrad::test::note(size);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  tritgrad::test::note(size);
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}

#endif
