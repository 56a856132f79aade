// Ranks that are threads of this process.
#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <exception>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "optim/parallel/communicator.h"

namespace tritgrad::test {

// The board on which ranks lay messages out for each other.
struct RankBoard {
  explicit RankBoard(int n)
      : letters(static_cast<std::size_t>(n),
                std::vector<std::vector<std::byte>>(static_cast<std::size_t>(n))),
        barrier(n) {}
  std::vector<std::vector<std::vector<std::byte>>> letters;  // [from][to]
  std::barrier<> barrier;
  std::atomic<int> broken_at = std::numeric_limits<int>::max();  // the first meeting without all
};

class ThreadRank final : public Communicator {
 public:
  ThreadRank(RankBoard& board, int rank) : board_(&board), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(board_->letters.size()); }
  void leave() {
    int before = board_->broken_at;
    while (meetings_ < before && !board_->broken_at.compare_exchange_weak(before, meetings_)) {
    }
    board_->barrier.arrive_and_drop();
  }

 protected:
  void transfer(std::span<const std::span<const std::byte>> to_rank,
                std::span<const std::span<std::byte>> from_rank) override {
    const auto own = static_cast<std::size_t>(rank_);
    for (std::size_t r = 0; r < to_rank.size(); ++r) {
      board_->letters[own][r].assign(to_rank[r].begin(), to_rank[r].end());
    }
    meet();
    for (std::size_t r = 0; r < from_rank.size(); ++r) {
      const std::vector<std::byte>& letter = board_->letters[r][own];
      if (letter.size() != from_rank[r].size()) {
        throw std::runtime_error("a message has another size than its receiver expects");
      }
      std::copy(letter.begin(), letter.end(), from_rank[r].begin());
    }
    meet();
  }

 private:
  // Whoever throws leaves the barrier, and the others must not go on with half of the messages.
  void meet() {
    board_->barrier.arrive_and_wait();
    if (board_->broken_at <= meetings_) throw std::runtime_error("another rank has failed");
    ++meetings_;
  }
  RankBoard* board_;
  int rank_;
  int meetings_ = 0;
};

// Calls body(ranks) on `count` threads at once and rethrows what the lowest rank threw.
inline void run_ranks(int count, const std::function<void(Communicator&)>& body) {
  RankBoard board(count);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadRank ranks(board, rank);
      try {
        body(ranks);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
        ranks.leave();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace tritgrad::test
