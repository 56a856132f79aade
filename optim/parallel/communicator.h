// The messages between ranks of a data-parallel run: one primitive, and what follows from it.
//
// A rank is one process of a job that trains one model. Every exchange names what goes to and comes
// from every rank, so volumes are known beforehand, nothing depends on who is first, and sums are
// made by whoever wants them, in the order of the ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tritgrad {

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Sends to_rank[r] to rank r and waits for as many bytes as from_rank[r] has of rank r; what goes
  // to this rank itself is copied. All ranks call it with sizes that fit. Throws Error that names
  // the ranks of which nothing came in time.
  void exchange(std::span<const std::span<const std::byte>> to_rank,
                std::span<const std::span<std::byte>> from_rank);
  // Gathers: all[r] becomes what rank r gave, as many bytes as it has room for.
  void all_gather(std::span<const std::byte> own, std::span<const std::span<std::byte>> all);

  // Returns the bytes that this rank has sent to others so far.
  std::int64_t bytes_sent() const { return bytes_sent_; }

 protected:
  virtual void transfer(std::span<const std::span<const std::byte>> to_rank,
                        std::span<const std::span<std::byte>> from_rank) = 0;

 private:
  std::int64_t bytes_sent_ = 0;
  std::vector<std::span<const std::byte>> same_;  // of all_gather()
};

// Returns what every rank gives, in the order of the ranks.
template <typename T>
std::vector<T> gather_values(Communicator& ranks, const T& own) {
  std::vector<T> all(static_cast<std::size_t>(ranks.size()));
  std::vector<std::span<std::byte>> places;
  for (T& value : all) places.push_back(std::as_writable_bytes(std::span(&value, 1)));
  ranks.all_gather(std::as_bytes(std::span(&own, 1)), places);
  return all;
}

// Throws Error on all ranks, naming `what`, the first rank whose value differs from rank 0's, and
// both values where they are short.
void check_agreement(Communicator& ranks, std::string_view what, const std::string& value);

// Return how many ranks the launcher (mpirun, srun) says there are, and which one this is; 1 and 0
// without one.
int launched_ranks();
int launched_rank();

// Ends the process after it has said why; called on a thread of its own, where nothing can be
// thrown at the one that waits.
using GiveUp = std::function<void(const std::string& sentence)>;

// Returns the ranks of this job: those of MPI where a launcher started several processes, else this
// process alone. An exchange that takes longer than `timeout` seconds fails; where parting does, or
// where connecting does and has taken a minute, inside MPI, `give_up` is called. Called once in a
// process. Throws Error where there are several processes that cannot reach each other.
std::unique_ptr<Communicator> connect_ranks(double timeout, const GiveUp& give_up);

// Ends the other ranks too, after an error on this one; returns where there are none.
void abandon_ranks();

}  // namespace tritgrad
