// What loops among threads promise besides their results: who runs a unit, what is thrown, and how
// shares, the one cut by the number of threads, are made.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

using Share = std::pair<std::int64_t, std::int64_t>;

std::vector<Share> shares_of(std::int64_t n, std::int64_t least) {
  std::vector<Share> shares;
  std::mutex mutex;
  parallel_shares(n, least, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    shares.emplace_back(begin, end);
  });
  std::sort(shares.begin(), shares.end());
  return shares;
}

TEST_CASE("parallel shares: they cover everything once, are equal, and not too many or too small") {
  for (const int threads : {1, 2, 3, 16}) {
    set_thread_count(threads);
    for (const std::int64_t least : {0, 1, 3, 100}) {
      for (const std::int64_t n : {0, 1, 2, 3, 5, 16, 17, 299, 1000}) {
        CAPTURE(threads);
        CAPTURE(least);
        CAPTURE(n);
        const std::vector<Share> shares = shares_of(n, least);
        const auto count = static_cast<std::int64_t>(shares.size());
        const std::int64_t most = n / std::max<std::int64_t>(least, 1);
        CHECK(count == std::clamp<std::int64_t>(most, 1, threads));
        std::int64_t covered = 0;
        for (const auto& [begin, end] : shares) {
          CHECK(begin == covered);
          CHECK(end - begin >= n / count);
          CHECK(end - begin <= n / count + 1);
          covered = end;
        }
        CHECK(covered == n);
      }
    }
  }
  set_thread_count(0);
}

}  // namespace

}  // namespace tritgrad::test::test_parallel
