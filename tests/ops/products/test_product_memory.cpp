// What products of floats take of the stack and of the heap.
#include <doctest/doctest.h>

#include "tests/support/heap_calls.h"

#ifndef TRITGRAD_SANITIZED  // sanitizers have stacks and a heap of their own

#include <malloc.h>
#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "ops/products/dense_product.h"
#include "tests/support/product_inputs.h"

namespace tritgrad::test::test_product_memory {
namespace {

// Runs body() on a thread of its own; how many bytes of its stack were written to.
template <typename Body>
std::int64_t stack_of(const Body& body) {
  constexpr std::uint64_t kUntouched = 0x5A5A5A5A5A5A5A5A;
  std::vector<std::uint64_t> stack((4 << 20) / sizeof kUntouched, kUntouched);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  REQUIRE(pthread_attr_setstack(&attributes, stack.data(), 4 << 20) == 0);
  pthread_t thread;
  const auto run = [](void* action) -> void* {
    (*static_cast<const Body*>(action))();
    return nullptr;
  };
  void* const action = const_cast<void*>(static_cast<const void*>(&body));
  REQUIRE(pthread_create(&thread, &attributes, run, action) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  // It grows downwards.
  const auto lowest = std::find_if(stack.begin(), stack.end(),
                                   [](std::uint64_t word) { return word != kUntouched; });
  return (stack.end() - lowest) * std::int64_t{sizeof kUntouched};
}

TEST_CASE("product memory: gemm takes less than 2 MiB of stack and no heap") {
  std::int64_t most = 0;
  for (const auto& [m, n, k] :
       {std::array<std::int64_t, 3>{256, 256, 1000}, {256, 1, 3000}, {1, 256, 3000}}) {
    for_each_mode(m, n, k, [&](const GemmShape& shape) {
      Product product(shape, 0);
      for (const KernelTables* table : supported_kernels()) {
        std::int64_t calls = -1;
        const std::int64_t stack = stack_of([&] {
          const std::int64_t before = g_heap_calls;
          product.run(table->products.gemm);
          calls = g_heap_calls - before;
        });
        INFO(table->name, " ", shape.m, "x", shape.n, "x", shape.k, " transposes ",
             shape.transpose_a, shape.transpose_b);
        CHECK(stack < 2 << 20);
        CHECK(calls == 0);
        most = std::max(most, stack);
      }
    });
  }
  CHECK(most > 100'000);  // packed operands: it is seen
}

TEST_CASE("product memory: dense_product takes less than 4 MiB of heap and gives it back") {
  const auto in_use = [] {
    const struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
  };
  bool packs = false;
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1024, 1024, 600}, {1500, 10, 700}}) {
    for_each_mode(m, n, k, [&](const GemmShape& shape) {
      Product product(shape, 0);
      product.run(dense_product);  // code that is made once stays
      const std::size_t before = in_use();
      const std::int64_t bytes = g_heap_bytes;
      product.run(dense_product);
      // All that it has asked for, so more than it ever had.
      CHECK(g_heap_bytes - bytes < 4 << 20);
      // Small pieces stay with the allocator, which keeps them for the thread and counts them as
      // used.
      CHECK(in_use() < before + 16 * 1024);
      packs |= g_heap_bytes > bytes;
    });
  }
  // oneDNN does for some products, whichever they are on this processor; gemm never.
  CHECK(packs == (dense_product_library() == std::string_view("oneDNN")));
}

}  // namespace
}  // namespace tritgrad::test::test_product_memory

#else

TEST_CASE("product memory: stack and heap") {
  MESSAGE("skipped: the stack and the heap of products, which are the sanitizer's here");
}

#endif
