#include "optim/parallel/chunk_sum.h"

#include <cstring>

#include "engine/kernel_table.h"

namespace tritgrad {

ChunkSum::ChunkSum(const Communicator& ranks, WireFloat number, std::int64_t n)
    : number_(number),
      partition_{n, ranks.size()},
      rank_(ranks.rank()),
      addend_(static_cast<std::size_t>(partition_.size(rank_)) * sizeof(float),
              Category::kWorkspace) {
  if (number == WireFloat::kFp32) return;
  halves_ = Buffer(static_cast<std::size_t>(partition_.size(0)) * sizeof(std::uint16_t),
                   Category::kWorkspace);
}

void ChunkSum::encode(int owner, std::byte* out) {
  const float* from = x_ + partition_.begin(owner);
  const auto size = static_cast<std::size_t>(bytes(owner));
  if (number_ == WireFloat::kFp32) {
    std::memcpy(out, from, size);
    return;
  }
  std::uint16_t* halves = halves_.as<std::uint16_t>();
  kernels().float_to_bf16(halves, from, nullptr, partition_.size(owner));
  std::memcpy(out, halves, size);
}

void ChunkSum::decode(int owner, const std::byte* in, float* out) {
  const auto size = static_cast<std::size_t>(bytes(owner));
  if (number_ == WireFloat::kFp32) {
    std::memcpy(out, in, size);
    return;
  }
  std::uint16_t* halves = halves_.as<std::uint16_t>();
  std::memcpy(halves, in, size);
  kernels().bf16_to_float(out, halves, partition_.size(owner));
}

void ChunkSum::write_share(int to, std::byte* out) { encode(to, out); }

// The own share has been written by now, and its place takes the sum.
void ChunkSum::read_share(int from, const std::byte* in) {
  float* sum = x_ + partition_.begin(rank_);
  decode(rank_, in, from == 0 ? sum : addend_.as<float>());
  if (from > 0) kernels().add_scaled(sum, addend_.as<float>(), 1.0f, partition_.size(rank_));
}

void ChunkSum::write_result(std::byte* out) { encode(rank_, out); }

void ChunkSum::read_result(int owner, const std::byte* in) {
  decode(owner, in, x_ + partition_.begin(owner));
}

}  // namespace tritgrad
