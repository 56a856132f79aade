// What is asked for before it is read: that it is the memory which is read then cannot be seen from
// results, only from where it lies.
#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "engine/formats/storage.h"
#include "engine/memory/parallel.h"
#define TRITGRAD_TARGET in_test
#include "ops/kernels/products/ask_ahead-inl.h"
#include "tests/support/support.h"
#include "tests/support/support_formats.h"

namespace tritgrad::test::test_memory_ahead {
namespace {

// All bytes of a storage: those in memory, and whether runs of `ahead` hold them.
struct Bytes {
  std::vector<std::byte> values;
  std::vector<bool> asked;
  std::int64_t outside = 0;  // of the runs, not of the storage
};
Bytes bytes_of(const Storage& storage, const MemoryAhead& ahead) {
  Bytes all;
  std::int64_t inside = 0, in_runs = 0;
  for (const Plane& plane : storage.planes()) {
    for (const std::byte& byte : plane.bytes) {
      bool asked = false;
      for (const MemoryRuns& runs : ahead.planes) {
        for (std::int64_t r = 0; r < runs.count; ++r) {
          const auto* first = static_cast<const std::byte*>(runs.first) + r * runs.stride;
          asked |= &byte >= first && &byte < first + runs.bytes;
        }
      }
      all.values.push_back(byte);
      all.asked.push_back(asked);
      inside += asked;
    }
  }
  for (const MemoryRuns& runs : ahead.planes) in_runs += runs.count * runs.bytes;
  all.outside = in_runs - inside;
  return all;
}

}  // namespace

TEST_CASE("memory ahead: of a tile, all that an update of it changes and nothing else") {
  for (const FormatKind kind : formats_for(kWeight)) {
    for (const std::int64_t cols : {320, 700}) {
      CAPTURE(std::string(format_name(kind)));
      CAPTURE(cols);
      constexpr std::int64_t kRows = 9;
      Storage storage(spec_of(kind), {kRows, cols}, Category::kWeights);
      if (!storage.holds_trits()) continue;
      encode_all(storage, std::vector<float>(static_cast<std::size_t>(kRows * cols), 0.0f));
      for (std::int64_t col = 0; col < cols; col += kBlock) {
        const Tile tile{3, 7, col};
        const Bytes before = bytes_of(storage, storage.memory_of(tile, Reading::kMaster));
        CHECK(before.outside == 0);
        // Enough steps for every byte to change in one of them, also of accumulators that sixteen
        // trits have by turns.
        const std::int64_t n = std::min(kBlock, cols - col);
        std::vector<bool> changed(before.values.size());
        for (std::uint32_t step = 1; step <= 64; ++step) {
          const Descent descent(1.0f, RandomKey{1, 2, step});
          const std::vector<float> direction = numbers(n, step);
          for (std::int64_t row = tile.row_begin; row < tile.row_end; ++row) {
            storage.descend(Block{row, col, n}, {direction.data(), 1.0f, false}, descent);
          }
          const Bytes now = bytes_of(storage, {});
          for (std::size_t i = 0; i < changed.size(); ++i) {
            if (now.values[i] != before.values[i]) changed[i] = true;
          }
        }
        CHECK(changed == before.asked);
      }
    }
  }
}

TEST_CASE("memory ahead: of moments in fp32 and int8, the elements of the tile") {
  constexpr std::int64_t kRows = 9, kCols = 700;
  for (const FormatKind kind : {FormatKind::kFp32, FormatKind::kInt8}) {
    const Storage storage(spec_of(kind), {kRows, kCols}, Category::kMoments);
    const auto size = static_cast<std::int64_t>(kind == FormatKind::kFp32 ? sizeof(float) : 1);
    for (std::int64_t col = 0; col < kCols; col += kBlock) {
      CAPTURE(col);
      const std::int64_t n = std::min(kBlock, kCols - col);
      const Bytes bytes = bytes_of(storage, storage.memory_of({3, 7, col}, Reading::kMaster));
      CHECK(bytes.outside == 0);
      for (std::size_t i = 0; i < bytes.asked.size(); ++i) {
        const auto element = static_cast<std::int64_t>(i) / size;
        const std::int64_t row = element / kCols, at = element % kCols;
        // Scales of int8 lie behind its codes.
        REQUIRE(bytes.asked[i] == (row >= 3 && row < 7 && at >= col && at < col + n));
      }
    }
  }
}

TEST_CASE("memory ahead: a moment's planes follow the weight's, as long as there is room") {
  const std::vector<char> memory(100);
  const auto runs = [&](std::int64_t count) { return MemoryRuns{memory.data(), count, 5, 11}; };
  MemoryAhead ahead{{runs(1)}};
  ahead.add({});
  ahead.add({{runs(2), runs(0), runs(3)}});
  ahead.add({{runs(4)}});
  for (int plane = 0; plane < MemoryAhead::kPlanes; ++plane) {
    CHECK(ahead.planes[plane].count == plane + 1);
  }
}

TEST_CASE("memory ahead: trits are in the first plane, and there is nothing beyond a matrix") {
  for (const FormatKind kind : formats_for(kWeight)) {
    CAPTURE(std::string(format_name(kind)));
    const Storage storage(spec_of(kind), {5, 330}, Category::kWeights);
    const MemoryAhead value = storage.memory_of({1, 4, 320}, Reading::kValue);
    const bool asks =
        storage.holds_trits() || kind == FormatKind::kFp32 || kind == FormatKind::kInt8;
    if (!asks) {
      CHECK(value.planes[0].count == 0);
      continue;
    }
    CHECK(value.planes[0].count == 3);
    CHECK(value.planes[1].count == 0);
    CHECK(storage.memory_of({3, 9, 0}, Reading::kValue).planes[0].count == 2);
    for (const Tile& tile : {Tile{5, 9, 0}, Tile{0, 2, 640}}) {
      for (const MemoryRuns& runs : storage.memory_of(tile, Reading::kMaster).planes) {
        CHECK(runs.count == 0);
      }
    }
  }
}

TEST_CASE("memory ahead: what is taken off is all of it, once") {
  const std::vector<char> memory(100);
  for (const std::int64_t count : {0, 1, 4, 7}) {
    for (const std::int64_t n : {1, 3, 5}) {
      CAPTURE(count);
      CAPTURE(n);
      const MemoryRuns runs{memory.data(), count, 5, 11};
      MemoryAhead left{{runs, runs, runs}};
      std::int64_t seen = 0;
      while (left.planes[2].count > 0) {
        const MemoryRuns taken = left.take(n).planes[2];
        CHECK(taken.first == memory.data() + seen * runs.stride);
        CHECK(taken.count == std::min(n, count - seen));
        CHECK(taken.bytes == runs.bytes);
        CHECK(taken.stride == runs.stride);
        seen += taken.count;
      }
      CHECK(seen == count);
      CHECK(left.take(n).planes[0].count == 0);
    }
  }
}

TEST_CASE("memory ahead: shares are all lines that the runs touch, none twice in a run") {
  const std::vector<char> memory(4096);
  for (const std::int64_t offset : {0, 1, 63}) {
    for (const std::int64_t bytes : {0, 1, 64, 65, 320}) {
      for (const std::int64_t shares : {0, 1, 2, 5, 40}) {
        CAPTURE(offset);
        CAPTURE(bytes);
        CAPTURE(shares);
        const MemoryAhead ahead{
            {{memory.data() + offset, 3, bytes, 400}, {memory.data(), 2, 1, 7}}};
        std::vector<std::uintptr_t> expected, asked;
        for (const MemoryRuns& runs : ahead.planes) {
          for (std::int64_t r = 0; r < runs.count && runs.bytes > 0; ++r) {
            const auto first = reinterpret_cast<std::uintptr_t>(runs.first) +
                               static_cast<std::uintptr_t>(r * runs.stride);
            const std::uintptr_t last = first + static_cast<std::uintptr_t>(runs.bytes) - 1;
            for (std::uintptr_t line = first / 64; line <= last / 64; ++line) {
              expected.push_back(line);
            }
          }
        }
        in_test::AskAhead ask(ahead, shares);
        std::size_t largest = 0;
        for (std::int64_t i = 0; i < std::max<std::int64_t>(1, shares); ++i) {
          const std::size_t before = asked.size();
          ask.for_each_line([&](const char* line) {
            asked.push_back(reinterpret_cast<std::uintptr_t>(line) / 64);
          });
          largest = std::max(largest, asked.size() - before);
        }
        CHECK(asked == expected);
        // A run may begin anywhere in its first line, so it is taken for one line more.
        const std::int64_t most = 3 * ((bytes + 126) / 64) + 2;
        if (shares > 0) CHECK(static_cast<std::int64_t>(largest) <= (most + shares - 1) / shares);
      }
    }
  }
}

}  // namespace tritgrad::test::test_memory_ahead
