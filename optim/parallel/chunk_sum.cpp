#include "optim/parallel/chunk_sum.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/kernels/codecs.h"
#include "engine/kernels/reductions.h"

namespace tritgrad {
namespace {

// Numbers that are decoded at a time; messages begin at any byte, kernels want aligned numbers.
constexpr std::int64_t kPiece = 512;

// body(first, count) for parts of [0, n).
template <typename Body>
void for_each_part(std::int64_t n, const Body& body) {
  for (std::int64_t first = 0; first < n; first += kPiece) body(first, std::min(kPiece, n - first));
}

// n numbers of a message.
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
  for_each_part(partition_.size(rank_), [&](std::int64_t first, std::int64_t n) {
    const std::byte* piece = in + first * width();
    if (from == 0) return decode(number_, piece, n, sum() + first);
    std::array<float, kPiece> addend;
    decode(number_, piece, n, addend.data());
    kernels().reductions.add_scaled(sum() + first, addend.data(), 1.0f, n);
  });
}

void ChunkSum::write_result(std::byte* out) {
  if (number_ == WireFloat::kFp32) return write_share(rank_, out);
  for_each_part(partition_.size(rank_), [&](std::int64_t first, std::int64_t n) {
    std::array<std::uint16_t, kPiece> halves;
    kernels().codecs.float_to_bf16(halves.data(), sum() + first, nullptr, n);
    std::memcpy(out + first * width(), halves.data(), static_cast<std::size_t>(n * width()));
  });
}

void ChunkSum::read_result(int owner, const std::byte* in) {
  std::memcpy(chunk(owner), in, static_cast<std::size_t>(bytes(owner)));
}

}  // namespace tritgrad
