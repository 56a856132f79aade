// Sums of votes over all ranks: integers all the way, so that no order and no number of ranks
// changes a bit.
#pragma once

#include <vector>

#include "engine/memory/buffer.h"
#include "optim/parallel/lane.h"
#include "optim/parallel/partition.h"
#include "optim/parallel/vote_codes.h"

namespace tritgrad {

class VoteSum final : public Reduction {
 public:
  // majority: the sign of the sum is the result.
  VoteSum(const Communicator& ranks, std::int64_t n, bool majority);

  // Forgets the votes. Every one of the `parts` casts one for each element at most.
  void begin(int parts);
  // [n]: of this rank, to add to; after the reduction the sums, or their signs.
  std::int8_t* votes() { return votes_.as<std::int8_t>(); }
  const std::int8_t* votes() const { return votes_.as<std::int8_t>(); }

  std::uint8_t note() const override;  // whether an element has votes that add up to 0
  void read_note(int rank, std::uint8_t note) override {
    zeros_[static_cast<std::size_t>(rank)] = note;
  }
  std::int64_t share_bytes(int from, int to) const override {
    return vote_bytes(share_code(from), partition_.size(to));
  }
  void write_share(int to, std::byte* out) override;
  void read_share(int from, const std::byte* in) override;
  std::int64_t result_bytes(int owner) const override {
    return vote_bytes(result_code(), partition_.size(owner));
  }
  void write_result(std::byte* out) override;
  void read_result(int owner, const std::byte* in) override;

 private:
  VoteCode share_code(int rank) const;
  VoteCode result_code() const { return vote_code(majority_ ? 1 : parts_, true); }

  Partition partition_;
  int rank_;
  bool majority_;
  int parts_ = 1;
  Buffer votes_;
  std::vector<std::uint8_t> zeros_;  // by rank
  Buffer share_;
};

}  // namespace tritgrad
