// The sum over all ranks of vectors of floats, added in the order of the ranks.
#pragma once

#include "engine/buffer.h"
#include "optim/parallel/partition.h"
#include "optim/parallel/reduction.h"

namespace tritgrad {

enum class WireFloat { kFp32, kBf16 };

class ChunkSum final : public Reduction {
 public:
  // As bf16 the addends and the sum are rounded to nearest; the adding is fp32.
  ChunkSum(const Communicator& ranks, WireFloat number, std::int64_t n);

  // x [n] becomes the sum by the next reduction, the same bits on all ranks.
  void attach(float* x) { x_ = x; }

  std::int64_t share_bytes(int /*from*/, int to) const override { return bytes(to); }
  void write_share(int to, std::byte* out) override;
  void read_share(int from, const std::byte* in) override;
  std::int64_t result_bytes(int owner) const override { return bytes(owner); }
  void write_result(std::byte* out) override;
  void read_result(int owner, const std::byte* in) override;

 private:
  std::int64_t bytes(int owner) const {
    return partition_.size(owner) * (number_ == WireFloat::kFp32 ? 4 : 2);
  }
  void encode(int owner, std::byte* out);
  void decode(int owner, const std::byte* in, float* out);

  WireFloat number_;
  Partition partition_;
  int rank_;
  float* x_ = nullptr;
  Buffer addend_;
  Buffer halves_;  // messages begin at any byte, kernels want even ones
};

}  // namespace tritgrad
