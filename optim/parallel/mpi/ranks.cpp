#include "optim/parallel/mpi/ranks.h"

// The C interface alone; that of C++ would have to be linked.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include "engine/check.h"

namespace tritgrad {
namespace {

using Clock = std::chrono::steady_clock;

// Launchers start the ranks of a job one after the other, on machines that may be busy, so meeting
// takes longer than any exchange after it and has a limit of its own, in seconds.
constexpr double kLeastTimeToBegin = 60.0;

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

std::string name_of(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return {text.data(), static_cast<std::size_t>(length)};
}

// "Open MPI v4.1.4"
std::string library_name() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string name(text.data(), static_cast<std::size_t>(length));
  return name.substr(0, name.find_first_of(",\n"));
}

// Calls `late` on a thread of its own unless it is destroyed within so many seconds: for calls into
// MPI that wait for other ranks and take no deadline.
class Deadline {
 public:
  Deadline(double seconds, std::function<void()> late)
      : thread_([this, seconds, late = std::move(late)] {
          std::unique_lock lock(mutex_);
          const auto met = [this] { return met_; };
          if (!changed_.wait_for(lock, std::chrono::duration<double>(seconds), met)) late();
        }) {}
  ~Deadline() {
    {
      const std::lock_guard lock(mutex_);
      met_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool met_ = false;
  std::thread thread_;  // the last member: it uses the others
};

class MpiRanks final : public Communicator {
 public:
  MpiRanks(double timeout, const GiveUp& give_up)
      : timeout_(timeout), give_up_(give_up), rank_(launched_rank()) {
    {
      const Deadline deadline = give_up_unless("begin", std::max(timeout, kLeastTimeToBegin));
      int provided = 0;
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
      check(provided >= MPI_THREAD_FUNNELED, library_name(),
            " allows a process no threads; use an MPI that was built with them");
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    check(size_ == launched_ranks(), "the launcher has started ", launched_ranks(),
          " processes, but ", library_name(), ", which this tritgrad was built with, finds ", size_,
          " of them, so that each would train alone; start them with the mpirun of that MPI");
  }
  // Finalizing waits for all ranks, which after an error may never come; see abort_mpi().
  ~MpiRanks() override {
    if (std::uncaught_exceptions() > 0) return;
    const Deadline deadline = give_up_unless("end", timeout_);
    MPI_Finalize();
  }
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

 protected:
  void transfer(std::span<const std::span<const std::byte>> to_rank,
                std::span<const std::span<std::byte>> from_rank) override {
    receiving_.assign(static_cast<std::size_t>(size_), MPI_REQUEST_NULL);
    sending_ = receiving_;
    try {
      begin_transfer(to_rank, from_rank);
      wait();
    } catch (...) {  // MPI must not write to what is freed now
      cancel(receiving_);
      cancel(sending_);
      throw;
    }
  }

 private:
  void begin_transfer(std::span<const std::span<const std::byte>> to_rank,
                      std::span<const std::span<std::byte>> from_rank) {
    constexpr int kTag = 1;
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      const auto r = static_cast<std::size_t>(other);
      check_code(MPI_Irecv(from_rank[r].data(), count_of(from_rank[r].size()), MPI_BYTE, other,
                           kTag, MPI_COMM_WORLD, &receiving_[r]));
      check_code(MPI_Isend(to_rank[r].data(), count_of(to_rank[r].size()), MPI_BYTE, other, kTag,
                           MPI_COMM_WORLD, &sending_[r]));
    }
  }

  static void cancel(std::vector<MPI_Request>& requests) {
    for (MPI_Request& request : requests) {
      if (request == MPI_REQUEST_NULL) continue;
      MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
  }

  // Not MPI_Waitall, which waits for ever, and burns a core that another rank may need.
  void wait() {
    constexpr int kPatience = 200;
    const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_);
    for (int tries = 0; !all_done(receiving_) || !all_done(sending_); ++tries) {
      if (Clock::now() >= deadline) {
        const std::string late = missing();  // nobody, where the last message came just now
        check(late.empty(), waited_for(late, timeout_));
      }
      if (tries < kPatience) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
  }

  bool all_done(std::vector<MPI_Request>& requests) {
    int done = 0;
    statuses_.resize(requests.size());
    const int code =
        MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, statuses_.data());
    if (code == MPI_ERR_IN_STATUS) {
      for (const MPI_Status& status : statuses_) {
        if (status.MPI_ERROR != MPI_ERR_PENDING) check_code(status.MPI_ERROR);
      }
    }
    check_code(code);
    return done != 0;
  }

  void check_code(int code) const {
    check(code == MPI_SUCCESS, "rank ", rank_,
          " cannot exchange messages with the others: ", code == MPI_SUCCESS ? "" : name_of(code),
          "; do all ranks run the same tritgrad with the same options? Resume from the last "
          "checkpoint (--resume)");
  }

  std::string waited_for(const std::string& whom, double seconds) const {
    return concat("rank ", rank_, " has waited ", seconds, " s for ", whom,
                  "; is it stopped, or is its machine or the network down? Resume from the last "
                  "checkpoint (--resume), or allow more time (--dp-timeout)");
  }

  Deadline give_up_unless(const char* all, double seconds) const {
    return Deadline(seconds, [this, all, seconds] {
      give_up_(waited_for(concat("another rank to ", all), seconds));
    });
  }

  // "rank 2", "ranks 1, 3"; nothing where no message is missing.
  std::string missing() {
    std::string names;
    int count = 0;
    for (std::size_t r = 0; r < receiving_.size(); ++r) {
      int received = 1, sent = 1;
      check_code(MPI_Test(&receiving_[r], &received, MPI_STATUS_IGNORE));
      check_code(MPI_Test(&sending_[r], &sent, MPI_STATUS_IGNORE));
      if (received != 0 && sent != 0) continue;
      names += (count++ == 0 ? "" : ", ") + std::to_string(r);
    }
    return count == 0 ? "" : (count == 1 ? "rank " : "ranks ") + names;
  }

  double timeout_;
  GiveUp give_up_;
  int rank_;
  int size_ = 1;
  std::vector<MPI_Request> receiving_, sending_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace

std::unique_ptr<Communicator> connect_mpi(double timeout, const GiveUp& give_up) {
  return std::make_unique<MpiRanks>(timeout, give_up);
}

void abort_mpi() {
  if (is_connected()) MPI_Abort(MPI_COMM_WORLD, 1);
}

}  // namespace tritgrad
