#include "optim/parallel/vote_sum.h"

#include <algorithm>
#include <cstring>

namespace tritgrad {

VoteSum::VoteSum(const Communicator& ranks, std::int64_t n, bool majority)
    : partition_{n, ranks.size()},
      rank_(ranks.rank()),
      majority_(majority),
      votes_(static_cast<std::size_t>(n), Category::kGradients),
      zeros_(static_cast<std::size_t>(ranks.size())),
      share_(static_cast<std::size_t>(partition_.size(rank_)), Category::kWorkspace) {}

void VoteSum::begin(int parts) {
  parts_ = parts;
  std::fill_n(votes(), partition_.n, std::int8_t{0});
}

std::uint8_t VoteSum::note() const {
  return std::memchr(votes(), 0, static_cast<std::size_t>(partition_.n)) != nullptr ? 1 : 0;
}

VoteCode VoteSum::share_code(int rank) const {
  const int cast = Parts::of_rank(rank, partition_.ranks, parts_).count();
  return vote_code(std::max(1, cast), zeros_[static_cast<std::size_t>(rank)] != 0);
}

void VoteSum::write_share(int to, std::byte* out) {
  pack_votes(share_code(rank_), votes() + partition_.begin(to), partition_.size(to), out);
}

// The own share has been written by now, and its place takes the sum.
void VoteSum::read_share(int from, const std::byte* in) {
  const std::int64_t own = partition_.size(rank_);
  std::int8_t* sum = votes() + partition_.begin(rank_);
  auto* share = share_.as<std::int8_t>();
  unpack_votes(share_code(from), in, own, from == 0 ? sum : share);
  if (from == 0) return;
  for (std::int64_t i = 0; i < own; ++i) {
    sum[i] = static_cast<std::int8_t>(sum[i] + share[i]);
  }
}

void VoteSum::write_result(std::byte* out) {
  const std::int64_t own = partition_.size(rank_);
  std::int8_t* sum = votes() + partition_.begin(rank_);
  if (majority_) {
    for (std::int64_t i = 0; i < own; ++i) {
      sum[i] = static_cast<std::int8_t>((sum[i] > 0) - (sum[i] < 0));
    }
  }
  pack_votes(result_code(), sum, own, out);
}

void VoteSum::read_result(int owner, const std::byte* in) {
  unpack_votes(result_code(), in, partition_.size(owner), votes() + partition_.begin(owner));
}

}  // namespace tritgrad
