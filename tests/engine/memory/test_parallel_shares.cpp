// The one way to cut work by the number of threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/memory/parallel.h"

namespace tritgrad::test::test_parallel_shares {
namespace {

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
}  // namespace tritgrad::test::test_parallel_shares
