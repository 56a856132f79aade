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

// Decodes n numbers of a message, which are floats.
void decode(WireCode code, const std::byte* in, std::int64_t n, float* out) {
  if (code == WireCode::kFp32) {
    std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(float));
    return;
  }
  std::array<std::uint16_t, kPiece> halves;
  std::memcpy(halves.data(), in, static_cast<std::size_t>(n) * sizeof(std::uint16_t));
  kernels().codecs.bf16_to_float(out, halves.data(), n);
}

}  // namespace

FloatSum::FloatSum(const Communicator& ranks, WireCode code, std::int64_t n)
    : ChunkedSum(ranks, n), code_(code) {
  if (code == WireCode::kFp32) return;
  sum_ = Buffer(static_cast<std::size_t>(own_size()) * sizeof(float), Category::kWorkspace);
}

void FloatSum::write_addend(int to, std::byte* out) {
  std::memcpy(out, chunk(to), static_cast<std::size_t>(result_bytes(to)));
}

// The own addend has been written by now, and its place may take the sum.
void FloatSum::read_addend(int from, const std::byte* in) {
  for_each_piece_of(own_size(), [&](std::int64_t first, std::int64_t n) {
    const std::byte* piece = in + wire_bytes(code_, first);
    if (from == 0) return decode(code_, piece, n, sum() + first);
    std::array<float, kPiece> addend;
    decode(code_, piece, n, addend.data());
    kernels().reductions.add_scaled(sum() + first, addend.data(), 1.0f, n);
  });
}

void FloatSum::write_result(std::byte* out) {
  if (code_ == WireCode::kFp32) return write_addend(rank(), out);
  for_each_piece_of(own_size(), [&](std::int64_t first, std::int64_t n) {
    std::array<std::uint16_t, kPiece> halves;
    kernels().codecs.float_to_bf16(halves.data(), sum() + first, nullptr, n);
    std::memcpy(out + wire_bytes(code_, first), halves.data(),
                static_cast<std::size_t>(wire_bytes(code_, n)));
  });
}

void FloatSum::read_result(int owner, const std::byte* in) {
  std::memcpy(chunk(owner), in, static_cast<std::size_t>(result_bytes(owner)));
}

void GatheredParts::write_result(std::byte* out) {
  std::memcpy(out, part(Parts::of_rank(rank_, ranks_, parts_).begin),
              static_cast<std::size_t>(result_bytes(rank_)));
}

void GatheredParts::read_result(int owner, const std::byte* in) {
  std::memcpy(part(Parts::of_rank(owner, ranks_, parts_).begin), in,
              static_cast<std::size_t>(result_bytes(owner)));
}

CompressedMean::CompressedMean(const Communicator& ranks, WireCode code, std::int64_t n)
    : ChunkedSum(ranks, n),
      code_(code),
      worker_error_(static_cast<std::size_t>(n) * sizeof(float), Category::kResiduals),
      server_error_(static_cast<std::size_t>(own_size()) * sizeof(float), Category::kResiduals),
      decoded_(server_error_.size(), Category::kWorkspace) {}

void CompressedMean::attach(float* x, const std::uint8_t* used) {
  x_ = x;
  used_ = used;
  kernels().reductions.add_scaled(worker_error_.as<float>(), x, 1.0f, partition().n);
}

void CompressedMean::write_addend(int to, std::byte* out) {
  compress(code_, worker_error_.as<float>() + partition().begin(to), partition().size(to), used(to),
           out);
}

void CompressedMean::read_addend(int /*from*/, const std::byte* in) {
  decompress(code_, in, own_size(), used(rank()), decoded_.as<float>());
  kernels().reductions.add_scaled(server_error_.as<float>(), decoded_.as<float>(),
                                  1.0f / static_cast<float>(partition().ranks), own_size());
}

void CompressedMean::write_result(std::byte* out) {
  compress(code_, server_error_.as<float>(), own_size(), used(rank()), out);
}

void CompressedMean::read_result(int owner, const std::byte* in) {
  decompress(code_, in, partition().size(owner), used(owner), x_ + partition().begin(owner));
}

VoteSum::VoteSum(const Communicator& ranks, std::int64_t n, bool majority)
    : ChunkedSum(ranks, n),
      majority_(majority),
      votes_(static_cast<std::size_t>(n), Category::kGradients),
      zeros_(static_cast<std::size_t>(ranks.size())),
      addend_(static_cast<std::size_t>(own_size()), Category::kWorkspace) {}

void VoteSum::begin(int parts) {
  parts_ = parts;
  std::fill_n(votes(), partition().n, std::int8_t{0});
}

std::uint8_t VoteSum::note() const {
  return std::memchr(votes(), 0, static_cast<std::size_t>(partition().n)) != nullptr ? 1 : 0;
}

WireCode VoteSum::addend_code(int rank) const {
  const int cast = Parts::of_rank(rank, partition().ranks, parts_).count();
  return vote_code(std::max(1, cast), zeros_[static_cast<std::size_t>(rank)] != 0);
}

void VoteSum::write_addend(int to, std::byte* out) {
  pack_votes(addend_code(rank()), votes() + partition().begin(to), partition().size(to), out);
}

// The own addend has been written by now, and its place takes the sum.
void VoteSum::read_addend(int from, const std::byte* in) {
  std::int8_t* sum = votes() + own_begin();
  auto* addend = addend_.as<std::int8_t>();
  unpack_votes(addend_code(from), in, own_size(), from == 0 ? sum : addend);
  if (from == 0) return;
  for (std::int64_t i = 0, n = own_size(); i < n; ++i) {
    sum[i] = static_cast<std::int8_t>(sum[i] + addend[i]);
  }
}

void VoteSum::write_result(std::byte* out) {
  std::int8_t* sum = votes() + own_begin();
  if (majority_) {
    for (std::int64_t i = 0, n = own_size(); i < n; ++i) {
      sum[i] = static_cast<std::int8_t>((sum[i] > 0) - (sum[i] < 0));
    }
  }
  pack_votes(result_code(), sum, own_size(), out);
}

void VoteSum::read_result(int owner, const std::byte* in) {
  unpack_votes(result_code(), in, partition().size(owner), votes() + partition().begin(owner));
}

}  // namespace tritgrad
