// The mean over all ranks of vectors that travel compressed, with error feedback on both ways
// (1-bit Adam: Tang et al. 2021; APMSqueeze: Tang et al. 2020).
//
//   c_i   = x_i + delta_i;         sent: C[c_i];   delta_i  = c_i - C[c_i]
//   s     = mean_i C[c_i] + delta; sent: C[s];     delta    = s - C[s];     mean = C[s]
//
// Every chunk has a scale of its own. 2 (ranks - 1) / ranks of the compressed vector leave a rank.
#pragma once

#include "optim/parallel/compressor.h"
#include "optim/parallel/floats_of.h"
#include "optim/parallel/partition.h"
#include "optim/parallel/reduction.h"

namespace tritgrad {

class CompressedMean final : public Reduction {
 public:
  CompressedMean(const Communicator& ranks, Compression compression, std::int64_t n);

  // x [n], of this rank, becomes the mean by the next reduction, the same on all ranks. `used` [n]
  // or null, see compress(); the same on all ranks. What x has is finite.
  void attach(float* x, const std::uint8_t* used);

  // What this rank has not sent yet [n], and what is left of its chunk of the mean.
  std::span<float> worker_error() { return floats_of(worker_error_); }
  std::span<float> server_error() { return floats_of(server_error_); }
  const Partition& partition() const { return partition_; }

  std::int64_t share_bytes(int /*from*/, int to) const override { return bytes(to); }
  void write_share(int to, std::byte* out) override;
  void read_share(int from, const std::byte* in) override;
  std::int64_t result_bytes(int owner) const override { return bytes(owner); }
  void write_result(std::byte* out) override;
  void read_result(int owner, const std::byte* in) override;

 private:
  std::int64_t bytes(int owner) const {
    return compressed_bytes(compression_, partition_.size(owner));
  }
  const std::uint8_t* used(int owner) const {
    return used_ == nullptr ? nullptr : used_ + partition_.begin(owner);
  }

  Compression compression_;
  Partition partition_;
  int rank_;
  Buffer worker_error_, server_error_;
  Buffer decoded_;  // a share of the own chunk
  float* x_ = nullptr;
  const std::uint8_t* used_ = nullptr;
};

}  // namespace tritgrad
