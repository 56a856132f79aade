// Counts calls of the heap, for what promises to leave it alone.
#pragma once

#ifndef TRITGRAD_SANITIZED  // which puts itself in front of the heap

#include <atomic>
#include <cstdint>

namespace tritgrad::test {

// Every call of the C heap so far, below operator new, Eigen and the C++ library alike.
extern std::atomic<std::int64_t> g_heap_calls;
// The bytes that they asked for, whether these were given back since or not.
extern std::atomic<std::int64_t> g_heap_bytes;

}  // namespace tritgrad::test

#endif
