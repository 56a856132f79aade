// What loops among threads promise besides their results: who runs a unit, and what is thrown.
#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "engine/memory/parallel.h"

namespace tritgrad::test::test_parallel {
namespace {

TEST_CASE("parallel: nested calls run on the calling thread") {
  set_thread_count(4);
  std::mutex mutex;
  std::set<std::thread::id> callers;
  std::atomic<int> units = 0, elsewhere = 0;
  parallel_for(4, [&](std::int64_t) {
    const std::thread::id caller = std::this_thread::get_id();
    {
      const std::lock_guard lock(mutex);
      callers.insert(caller);
    }
    const auto note = [&] {
      ++units;
      elsewhere += std::this_thread::get_id() != caller;
    };
    parallel_for(8, [&](std::int64_t) { note(); });
    parallel_ranges(8, 1, [&](std::int64_t, std::int64_t) { note(); });
    parallel_shares(8, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) note();
    });
  });
  set_thread_count(0);
  CHECK(callers.size() > 1);  // or there was nobody else who could have run them
  CHECK(units == 4 * 3 * 8);
  CHECK(elsewhere == 0);
}

TEST_CASE("parallel: the exception of the lowest unit is thrown when all threads have finished") {
  for (const int threads : {1, 2, 4}) {
    CAPTURE(threads);
    set_thread_count(threads);
    std::atomic<int> running = 0;
    std::string thrown;
    try {
      parallel_for(8, [&](std::int64_t unit) {
        ++running;
        // The lower, the later: the first to throw is not the one to be told of.
        std::this_thread::sleep_for(std::chrono::milliseconds(8 - unit));
        --running;
        if (unit >= 3) throw std::runtime_error(std::to_string(unit));
      });
    } catch (const std::runtime_error& error) {
      thrown = error.what();
    }
    CHECK(running == 0);
    CHECK(thrown == "3");
  }
  set_thread_count(0);
}

}  // namespace
}  // namespace tritgrad::test::test_parallel
