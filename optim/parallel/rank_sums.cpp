#include "optim/parallel/rank_sums.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/kernels/codecs.h"
#include "engine/kernels/reductions.h"

namespace tritgrad {
namespace {

// Numbers are decoded so many at a time: messages begin at any byte, kernels want aligned numbers.
constexpr std::int64_t kPiece = 512;

// Calls body(first, count) for pieces of [0, n).
template <typename Body>
void for_each_piece_of(std::int64_t n, const Body& body) {
  for (std::int64_t first = 0; first < n; first += kPiece) body(first, std::min(kPiece, n - first));
}

// Decodes n numbers of a message.
void decode(WireFloat number, const std::byte* in, std::int64_t n, float* out) {
  if (number == WireFloat::kFp32) {
    std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(float));
    return;
  }
  std::array<std::uint16_t, kPiece> halves;
  std::memcpy(halves.data(), in, static_cast<std::size_t>(n) * sizeof(std::uint16_t));
  kernels().codecs.bf16_to_float(out, halves.data(), n);
}

}  // namespace

ChunkSum::ChunkSum(const Communicator& ranks, WireFloat number, std::int64_t n)
    : number_(number), partition_{n, ranks.size()}, rank_(ranks.rank()) {
  if (number == WireFloat::kFp32) return;
  sum_ = Buffer(static_cast<std::size_t>(partition_.size(rank_)) * sizeof(float),
                Category::kWorkspace);
}

void ChunkSum::write_share(int to, std::byte* out) {
  std::memcpy(out, chunk(to), static_cast<std::size_t>(bytes(to)));
}

// The own share has been written by now, and its place may take the sum.
void ChunkSum::read_share(int from, const std::byte* in) {
  for_each_piece_of(partition_.size(rank_), [&](std::int64_t first, std::int64_t n) {
    const std::byte* piece = in + first * width();
    if (from == 0) return decode(number_, piece, n, sum() + first);
    std::array<float, kPiece> addend;
    decode(number_, piece, n, addend.data());
    kernels().reductions.add_scaled(sum() + first, addend.data(), 1.0f, n);
  });
}

void ChunkSum::write_result(std::byte* out) {
  if (number_ == WireFloat::kFp32) return write_share(rank_, out);
  for_each_piece_of(partition_.size(rank_), [&](std::int64_t first, std::int64_t n) {
    std::array<std::uint16_t, kPiece> halves;
    kernels().codecs.float_to_bf16(halves.data(), sum() + first, nullptr, n);
    std::memcpy(out + first * width(), halves.data(), static_cast<std::size_t>(n * width()));
  });
}

void ChunkSum::read_result(int owner, const std::byte* in) {
  std::memcpy(chunk(owner), in, static_cast<std::size_t>(bytes(owner)));
}

void GatheredParts::write_result(std::byte* out) {
  std::memcpy(out, part(Parts::of_rank(rank_, ranks_, parts_).begin),
              static_cast<std::size_t>(result_bytes(rank_)));
}

void GatheredParts::read_result(int owner, const std::byte* in) {
  std::memcpy(part(Parts::of_rank(owner, ranks_, parts_).begin), in,
              static_cast<std::size_t>(result_bytes(owner)));
}

CompressedMean::CompressedMean(const Communicator& ranks, Compression compression, std::int64_t n)
    : compression_(compression),
      partition_{n, ranks.size()},
      rank_(ranks.rank()),
      worker_error_(static_cast<std::size_t>(n) * sizeof(float), Category::kResiduals),
      server_error_(static_cast<std::size_t>(partition_.size(rank_)) * sizeof(float),
                    Category::kResiduals),
      decoded_(server_error_.size(), Category::kWorkspace) {}

void CompressedMean::attach(float* x, const std::uint8_t* used) {
  x_ = x;
  used_ = used;
  kernels().reductions.add_scaled(worker_error_.as<float>(), x, 1.0f, partition_.n);
}

void CompressedMean::write_share(int to, std::byte* out) {
  compress(compression_, worker_error_.as<float>() + partition_.begin(to), partition_.size(to),
           used(to), out);
}

void CompressedMean::read_share(int /*from*/, const std::byte* in) {
  const std::int64_t own = partition_.size(rank_);
  decompress(compression_, in, own, used(rank_), decoded_.as<float>());
  kernels().reductions.add_scaled(server_error_.as<float>(), decoded_.as<float>(),
                                  1.0f / static_cast<float>(partition_.ranks), own);
}

void CompressedMean::write_result(std::byte* out) {
  compress(compression_, server_error_.as<float>(), partition_.size(rank_), used(rank_), out);
}

void CompressedMean::read_result(int owner, const std::byte* in) {
  decompress(compression_, in, partition_.size(owner), used(owner), x_ + partition_.begin(owner));
}

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
