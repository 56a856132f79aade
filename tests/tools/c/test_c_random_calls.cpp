// Calls of the C interface with arguments by chance: each ends in a result or in a sentence. With
// the address and undefined-behaviour sanitizers (preset asan-ubsan, part of tools/test.sh) this is
// the test that nothing of a program in C is read or written that it did not give. The fuzzer
// tests/fuzz/fuzz_c.cpp makes the same calls.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>

#include "engine/random.h"
#include "tests/support/c_caller.h"

namespace tritgrad::test::test_c_random_calls {
namespace {

class Chance {
 public:
  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>(random_below(key_, ++at_, static_cast<std::uint32_t>(n)));
  }
  const char* text() { return kCallTexts[below(kCallTexts.size())]; }

 private:
  const RandomKey key_{11, random_stream("c interface"), 0};
  std::uint32_t at_ = 0;
};

}  // namespace

TEST_CASE("c random calls: three thousand end in a result or a sentence") {
  const CallerFiles files;
  Chance chance;
  Caller caller(files, chance);
  int done = 0, refused = 0;
  for (int i = 0; i < 3000; ++i) {
    const bool success = caller.call();
    (success ? done : refused) += 1;
    if (success) continue;
    CHECK(std::strlen(tg_error()) > 0);
    CHECK(tg_error_status() != TG_OK);
  }
  CHECK(refused > 1000);
  CHECK(done > 300);
  CHECK(tg_set_threads(0) == TG_OK);
}

}  // namespace tritgrad::test::test_c_random_calls
