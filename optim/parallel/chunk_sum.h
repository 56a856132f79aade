// The sum over all ranks of vectors of floats, added in the order of the ranks.
#pragma once

#include "engine/memory/buffer.h"
#include "optim/parallel/partition.h"
#include "optim/parallel/reduction.h"

namespace tritgrad {

// What a number is in memory and on its way.
enum class WireFloat { kFp32, kBf16 };

class ChunkSum final : public Reduction {
 public:
  // As bf16 the addends and the sum are rounded to nearest; the adding is fp32, in memory for this
  // rank's chunk alone.
  ChunkSum(const Communicator& ranks, WireFloat number, std::int64_t n);

  // x [n] of such numbers becomes the sum by the next reduction, the same bits on all ranks.
  void attach(float* x) { x_ = reinterpret_cast<std::byte*>(x); }
  void attach(std::span<std::byte> x) { x_ = x.data(); }

  std::int64_t share_bytes(int /*from*/, int to) const override { return bytes(to); }
  void write_share(int to, std::byte* out) override;
  void read_share(int from, const std::byte* in) override;
  std::int64_t result_bytes(int owner) const override { return bytes(owner); }
  void write_result(std::byte* out) override;
  void read_result(int owner, const std::byte* in) override;

 private:
  std::int64_t width() const { return number_ == WireFloat::kFp32 ? 4 : 2; }
  std::int64_t bytes(int owner) const { return partition_.size(owner) * width(); }
  std::byte* chunk(int owner) const { return x_ + partition_.begin(owner) * width(); }
  // Of this rank's chunk: fp32 is added up where it lies.
  float* sum() {
    return number_ == WireFloat::kFp32 ? reinterpret_cast<float*>(chunk(rank_)) : sum_.as<float>();
  }

  WireFloat number_;
  Partition partition_;
  int rank_;
  std::byte* x_ = nullptr;
  Buffer sum_;
};

}  // namespace tritgrad
