// The yardsticks count what they do. How fast they are is no test's business.
#include <doctest/doctest.h>

#include <string>

#include "engine/kernels/kernels.h"
#include "engine/kernels/peak_loops.h"
#include "engine/memory/buffer.h"

namespace tritgrad::test::test_peak_loops {
namespace {

// Runs `check` with every table that this machine has, and restores the one in use.
template <typename Check>
void with_each_table(const Check& check) {
  const std::string before = kernels().name;
  for (const KernelTables* table : supported_kernels()) {
    CAPTURE(table->name);
    use_kernels(table->name);
    check();
  }
  use_kernels(before.c_str());
}

void check_counts(const PeakLoop& loop) {
  REQUIRE(loop.instructions != nullptr);
  CAPTURE(loop.instructions);
  if (loop.run == nullptr) return;
  CHECK(loop.run(0) == 0);
  const std::int64_t once = loop.run(1);
  // Two for each of at least one number in each of the sums.
  CHECK(once >= 2 * 10);
  CHECK(loop.run(1000) == 1000 * once);
}

TEST_CASE("peak loops: operations are counted, and follow the instruction set") {
  with_each_table([] {
    const PeakLoops& loops = kernels().peak_loops;
    check_counts(loops.fp32);
    check_counts(loops.int8_trits);
    if (std::string(kernels().name) != "reference") {
      CHECK(loops.int8_trits.run(1) > loops.fp32.run(1));
    }
  });
}

TEST_CASE("peak loops: reading sees every byte") {
  const Buffer memory(2048, Category::kWorkspace);
  with_each_table([&] {
    const auto read = [&] { return kernels().peak_loops.read(memory.bytes().data(), 2048); };
    CHECK(read() == 0);
    for (std::size_t i = 0; i < memory.size(); ++i) {
      memory.bytes()[i] = std::byte{16};
      REQUIRE_MESSAGE(read() != 0, "byte ", i);
      memory.bytes()[i] = std::byte{0};
    }
    CHECK(kernels().peak_loops.read(memory.bytes().data(), 0) == 0);
  });
}

}  // namespace
}  // namespace tritgrad::test::test_peak_loops
