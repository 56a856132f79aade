#include "optim/parallel/communicator.h"

#include <algorithm>
#include <cstdlib>

#include "engine/check.h"
#include "engine/hash.h"
#include "optim/parallel/mpi/ranks.h"

namespace tritgrad {
namespace {

class SingleRank final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }

 protected:
  void transfer(std::span<const std::span<const std::byte>> /*to_rank*/,
                std::span<const std::span<std::byte>> /*from_rank*/) override {}
};

// Of Open MPI, MPICH and Slurm's own launcher.
int from_environment(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names) {
    if (const char* text = std::getenv(name); text != nullptr) return std::atoi(text);
  }
  return otherwise;
}

}  // namespace

int launched_ranks() {
  return std::max(1, from_environment({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, 1));
}

int launched_rank() {
  return std::max(0, from_environment({"OMPI_COMM_WORLD_RANK", "PMI_RANK"}, 0));
}

void Communicator::exchange(std::span<const std::span<const std::byte>> to_rank,
                            std::span<const std::span<std::byte>> from_rank) {
  const auto ranks = static_cast<std::size_t>(size());
  check(to_rank.size() == ranks && from_rank.size() == ranks, "Communicator: ", to_rank.size(),
        " messages to send and ", from_rank.size(), " to receive, expected ", ranks, " of each");
  const auto own = static_cast<std::size_t>(rank());
  check(to_rank[own].size() == from_rank[own].size(), "Communicator: a rank gives itself ",
        to_rank[own].size(), " bytes but expects ", from_rank[own].size());
  std::copy(to_rank[own].begin(), to_rank[own].end(), from_rank[own].begin());
  transfer(to_rank, from_rank);
  for (std::size_t r = 0; r < ranks; ++r) {
    if (r != own) bytes_sent_ += static_cast<std::int64_t>(to_rank[r].size());
  }
}

void Communicator::all_gather(std::span<const std::byte> own,
                              std::span<const std::span<std::byte>> all) {
  same_.assign(static_cast<std::size_t>(size()), own);
  exchange(same_, all);
}

void check_agreement(Communicator& ranks, std::string_view what, const std::string& value) {
  const std::vector<std::uint64_t> hashes =
      gather_values(ranks, xxh3(std::as_bytes(std::span(value))));
  const auto other = std::find_if(hashes.begin(), hashes.end(),
                                  [&](std::uint64_t hash) { return hash != hashes.front(); });
  check(other == hashes.end(), "rank ", other - hashes.begin(), " has another ", what,
        " than rank 0; all ranks of a job need the same program, data and options");
}

std::unique_ptr<Communicator> connect_ranks(double timeout) {
  if (launched_ranks() == 1) return std::make_unique<SingleRank>();
  return connect_mpi(timeout);
}

void abandon_ranks() {
  if (launched_ranks() > 1) abort_mpi();
}

}  // namespace tritgrad
