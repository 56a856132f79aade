#include "optim/parallel/mpi/ranks.h"

// The C interface alone; that of C++ would have to be linked.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <chrono>
#include <exception>
#include <limits>
#include <thread>

#include "engine/check.h"

namespace tritgrad {
namespace {

using Clock = std::chrono::steady_clock;

bool is_connected() {
  int begun = 0, over = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&over);
  return begun != 0 && over == 0;
}

int count_of(std::size_t bytes) {
  check(bytes <= static_cast<std::size_t>(std::numeric_limits<int>::max()), "a message has ", bytes,
        " bytes, at most ", std::numeric_limits<int>::max(),
        " supported; use more ranks or a smaller model");
  return static_cast<int>(bytes);
}

class MpiRanks final : public Communicator {
 public:
  explicit MpiRanks(double timeout) : timeout_(timeout) {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  // Finalizing waits for all ranks, which after an error may never come; see abort_mpi().
  ~MpiRanks() override {
    if (std::uncaught_exceptions() == 0) MPI_Finalize();
  }
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

 protected:
  void transfer(std::span<const std::span<const std::byte>> to_rank,
                std::span<const std::span<std::byte>> from_rank) override {
    constexpr int kTag = 1;
    receiving_.assign(static_cast<std::size_t>(size_), MPI_REQUEST_NULL);
    sending_ = receiving_;
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      const auto r = static_cast<std::size_t>(other);
      MPI_Irecv(from_rank[r].data(), count_of(from_rank[r].size()), MPI_BYTE, other, kTag,
                MPI_COMM_WORLD, &receiving_[r]);
      MPI_Isend(to_rank[r].data(), count_of(to_rank[r].size()), MPI_BYTE, other, kTag,
                MPI_COMM_WORLD, &sending_[r]);
    }
    wait();
  }

 private:
  // Not MPI_Waitall, which waits for ever, and burns a core that another rank may need.
  void wait() {
    constexpr int kPatience = 200;
    const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_);
    for (int tries = 0; !all_done(receiving_) || !all_done(sending_); ++tries) {
      check(Clock::now() < deadline, "rank ", rank_, " has waited ", timeout_, " s for ", missing(),
            "; is it stopped, or is its machine or the network down? Resume from the last "
            "checkpoint (--resume), or allow more time (--dp-timeout)");
      if (tries < kPatience) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
  }

  static bool all_done(std::vector<MPI_Request>& requests) {
    int done = 0;
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
    return done != 0;
  }

  // "rank 2", "ranks 1, 3"
  std::string missing() {
    std::string names;
    int count = 0;
    for (std::size_t r = 0; r < receiving_.size(); ++r) {
      int received = 1, sent = 1;
      MPI_Test(&receiving_[r], &received, MPI_STATUS_IGNORE);
      MPI_Test(&sending_[r], &sent, MPI_STATUS_IGNORE);
      if (received != 0 && sent != 0) continue;
      names += (count++ == 0 ? "" : ", ") + std::to_string(r);
    }
    return (count == 1 ? "rank " : "ranks ") + names;
  }

  double timeout_;
  int rank_ = 0;
  int size_ = 1;
  std::vector<MPI_Request> receiving_, sending_;
};

}  // namespace

std::unique_ptr<Communicator> connect_mpi(double timeout) {
  return std::make_unique<MpiRanks>(timeout);
}

void abort_mpi() {
  if (is_connected()) MPI_Abort(MPI_COMM_WORLD, 1);
}

}  // namespace tritgrad
