#include "optim/parallel/communicator.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "engine/check.h"
#include "engine/files/hash.h"
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

// Returns the first of them that is set; 0 where none is.
int from_environment(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const char* text = std::getenv(name); text != nullptr) return std::atoi(text);
  }
  return 0;
}

// Open MPI's mpirun sets the first; MPICH's, and srun where it speaks PMI, the second.
int size_of_job() { return from_environment({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}); }

// SLURM_NTASKS will not do, as it is set in a batch script too, where one process runs.
int slurm_tasks() { return from_environment({"SLURM_STEP_NUM_TASKS"}); }

// A rank's statement about itself; of long texts it holds the hash only.
struct Statement {
  static constexpr std::size_t kShown = 40;

  explicit Statement(std::string_view value) : hash(xxh3(std::as_bytes(std::span(value)))) {
    if (value.size() < kShown) std::copy(value.begin(), value.end(), text.begin());
    is_shown = value.size() < kShown ? 1 : 0;
  }
  Statement() = default;

  std::uint64_t hash = 0, is_shown = 0;
  std::array<char, kShown> text{};
};

}  // namespace

int launched_ranks() {
  // PMIx tells a process its rank, but not how many there are.
  const bool by_pmix = size_of_job() == 0 && std::getenv("PMIX_RANK") != nullptr;
  return std::max(1, by_pmix ? slurm_tasks() : size_of_job());
}

int launched_rank() {
  return std::max(0, from_environment({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}));
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
  const std::vector<Statement> all = gather_values(ranks, Statement(value));
  const Statement& first = all.front();
  const auto other = std::find_if(all.begin(), all.end(),
                                  [&](const Statement& one) { return one.hash != first.hash; });
  if (other == all.end()) return;
  const bool shown = first.is_shown != 0 && other->is_shown != 0;
  fail("rank ", other - all.begin(), " has another ", what, " than rank 0",
       shown ? concat(": '", other->text.data(), "', expected '", first.text.data(), "'") : "",
       "; all ranks of a job need the same program, data and options");
}

std::unique_ptr<Communicator> connect_ranks(double timeout, const GiveUp& give_up) {
  if (launched_ranks() > 1) return connect_mpi(timeout, give_up);
  check(size_of_job() > 0 || slurm_tasks() <= 1, "Slurm has started ", slurm_tasks(),
        " processes without MPI, so that each would train alone; start them with mpirun, or with "
        "srun --mpi=pmix");
  return std::make_unique<SingleRank>();
}

void abandon_ranks() {
  if (launched_ranks() > 1) abort_mpi();
}

}  // namespace tritgrad
