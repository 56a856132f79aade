// Memory of a step and of what outlives it: where it lies, what it holds, and that the ledger and
// the heap see no more of it than was asked for.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "engine/memory/arena.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_arena {
namespace {

// The sizes at which memory of each origin begins and ends: the heap, pages, huge pages
// (engine/memory/buffer.cpp).
constexpr std::size_t kSizes[] = {
    1, 63, 64, 65, 1000, 256 * 1024 - 1, 256 << 10, 300'001, (4 << 20) - 1, 4 << 20, 9'000'001};

bool is_aligned(const void* at) { return reinterpret_cast<std::uintptr_t>(at) % kAlignment == 0; }

std::int64_t live() { return ledger::live(Category::kWorkspace); }

TEST_CASE("buffer: aligned, zeroed though the memory was used before, and counted") {
  const std::int64_t before = live();
  for (const std::size_t size : kSizes) {
    CAPTURE(size);
    for (int time = 0; time < 3; ++time) {
      const Buffer buffer(size, Category::kWorkspace);
      CHECK(live() - before == static_cast<std::int64_t>(size));
      const std::span<std::byte> bytes = buffer.bytes();
      REQUIRE(bytes.size() == size);
      CHECK(is_aligned(bytes.data()));
      CHECK(std::count(bytes.begin(), bytes.end(), std::byte{0}) == std::ssize(bytes));
      std::memset(bytes.data(), 0xA5, size);
    }
    CHECK(live() == before);
  }
}

TEST_CASE("buffer: one that is moved is counted once, where it went to") {
  const std::int64_t before = live();
  Buffer from(1000, Category::kWorkspace), to(500, Category::kWorkspace);
  std::byte* const data = from.bytes().data();
  to = std::move(from);
  CHECK(to.bytes().data() == data);
  CHECK(to.size() == 1000);
  CHECK(live() - before == 1000);
  to = Buffer();
  CHECK(live() == before);
}

TEST_CASE("buffer: memory that cannot be had is an error that says what for, and not counted") {
  const std::int64_t before = live();
  CHECK(refusal([] { Buffer(std::size_t{1} << 60, Category::kWorkspace); }) ==
        "out of memory: 1152921504606846976 bytes of workspace cannot be allocated; use a smaller "
        "model or batch");
  CHECK(live() == before);
}

TEST_CASE("arena: aligned pieces that do not overlap") {
  Arena arena(Category::kWorkspace);
  for (int step = 0; step < 2; ++step) {
    std::vector<std::span<std::uint8_t>> pieces;
    for (const std::int64_t size : {0, 1, 63, 64, 65, 70'000, 5, 300'000}) {
      pieces.emplace_back(arena.allocate<std::uint8_t>(size), static_cast<std::size_t>(size));
      CHECK(is_aligned(pieces.back().data()));
      std::fill(pieces.back().begin(), pieces.back().end(),
                static_cast<std::uint8_t>(pieces.size()));
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      CHECK(std::count(pieces[i].begin(), pieces[i].end(), i + 1) == std::ssize(pieces[i]));
    }
    arena.reset();
  }
}

TEST_CASE("arena: it grows by what is asked for, and is one block of the same size after reset") {
  const std::int64_t before = live();
  {
    Arena arena(Category::kWorkspace);
    CHECK(live() == before);
    // In units of 64 bytes: blocks of their own, as nothing is left of the one before.
    constexpr std::int64_t kPieces[] = {100'000, 2000, 200'000};
    std::int64_t asked = 0;
    for (const std::int64_t units : kPieces) {
      arena.allocate<std::byte>(64 * units - 1);
      asked += 64 * units;
      CHECK(live() - before == asked);
    }
    CHECK(arena.used() == static_cast<std::size_t>(asked));
    for (int step = 0; step < 2; ++step) {
      arena.reset();
      CHECK(arena.used() == 0);
      CHECK(live() - before == asked);
      const std::byte* next = nullptr;
      for (const std::int64_t units : kPieces) {
        const std::byte* const piece = arena.allocate<std::byte>(64 * units - 1);
        if (next != nullptr) CHECK(piece == next);
        next = piece + 64 * units;
      }
      CHECK(live() - before == asked);
    }
  }
  CHECK(live() == before);
}

TEST_CASE("arena: small pieces share a block of 64 KiB") {
  const std::int64_t before = live();
  Arena arena(Category::kWorkspace);
  for (int i = 0; i < 1024; ++i) arena.allocate<std::byte>(64);
  CHECK(live() - before == 64 * 1024);
  arena.allocate<std::byte>(1);
  CHECK(live() - before == 2 * 64 * 1024);
}

}  // namespace
}  // namespace tritgrad::test::test_arena
