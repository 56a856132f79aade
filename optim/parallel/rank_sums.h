// Sums over all ranks, in four ways to travel: as floats, part by part in order, compressed with
// error feedback, and as integers. Each of them leaves the same bits on all ranks.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "optim/parallel/reduction.h"
#include "optim/parallel/wire_codes.h"

namespace tritgrad {

inline std::span<float> floats_of(const Buffer& buffer) {
  return {buffer.as<float>(), buffer.size() / sizeof(float)};
}

// A sum of n numbers of every rank. Addends of a chunk travel to its owner in one code, and the
// result travels to all ranks in another.
class ChunkedSum : public Reduction {
 public:
  ChunkedSum(const Communicator& ranks, std::int64_t n)
      : partition_{n, ranks.size()}, rank_(ranks.rank()) {}

  const Partition& partition() const { return partition_; }

  std::int64_t addend_bytes(int from, int to) const final {
    return wire_bytes(addend_code(from), partition_.size(to));
  }
  std::int64_t result_bytes(int owner) const final {
    return wire_bytes(result_code(), partition_.size(owner));
  }

 protected:
  virtual WireCode addend_code(int rank) const = 0;
  virtual WireCode result_code() const = 0;

  // Returns the chunk of this rank.
  int rank() const { return rank_; }
  std::int64_t own_begin() const { return partition_.begin(rank_); }
  std::int64_t own_size() const { return partition_.size(rank_); }

 private:
  Partition partition_;
  int rank_;
};

// The sum of vectors of floats, added in the order of the ranks. As bf16 the addends and the sum
// are rounded to nearest; the adding is fp32, in memory for this rank's chunk alone.
class FloatSum final : public ChunkedSum {
 public:
  // code: kFp32 or kBf16, in memory as on the wire.
  FloatSum(const Communicator& ranks, WireCode code, std::int64_t n);

  // The next reduction turns x [n] into the sum.
  void attach(float* x) { x_ = reinterpret_cast<std::byte*>(x); }
  void attach(std::span<std::byte> x) { x_ = x.data(); }

  void write_addend(int to, std::byte* out) override;
  void read_addend(int from, const std::byte* in) override;
  void write_result(std::byte* out) override;
  void read_result(int owner, const std::byte* in) override;

 private:
  WireCode addend_code(int /*rank*/) const override { return code_; }
  WireCode result_code() const override { return code_; }
  std::byte* chunk(int owner) const { return x_ + wire_bytes(code_, partition().begin(owner)); }
  // Returns the sum of this rank's chunk; fp32 is added up where it lies.
  float* sum() {
    return code_ == WireCode::kFp32 ? reinterpret_cast<float*>(chunk(rank())) : sum_.as<float>();
  }

  WireCode code_;
  std::byte* x_ = nullptr;
  Buffer sum_;
};

// Floats of every part of a batch, made known to all ranks, which may add them up in order.
class GatheredParts final : public Reduction {
 public:
  // `n`: floats of each part.
  GatheredParts(const Communicator& ranks, std::int64_t n)
      : rank_(ranks.rank()), ranks_(ranks.size()), n_(n) {}

  // Forgets what was there; all parts are 0.
  void begin(int parts) {
    parts_ = parts;
    floats_.resize(static_cast<std::size_t>(parts * n_) * sizeof(float));
    std::fill_n(part(0), parts * n_, 0.0f);
  }
  // [n]
  float* part(int index) const { return reinterpret_cast<float*>(floats_.data()) + index * n_; }
  int count() const { return parts_; }

  std::int64_t addend_bytes(int /*from*/, int /*to*/) const override { return 0; }
  void write_addend(int /*to*/, std::byte* /*out*/) override {}
  void read_addend(int /*from*/, const std::byte* /*in*/) override {}
  std::int64_t result_bytes(int owner) const override {
    return wire_bytes(WireCode::kFp32, Parts::of_rank(owner, ranks_, parts_).count() * n_);
  }
  void write_result(std::byte* out) override;
  void read_result(int owner, const std::byte* in) override;

 private:
  int rank_, ranks_;
  std::int64_t n_;
  int parts_ = 0;
  Message floats_;  // [parts x n]
};

// The mean of vectors that travel compressed, with error feedback on both ways (1-bit Adam: Tang et
// al. 2021; APMSqueeze: Tang et al. 2020).
//
//   c_i   = x_i + delta_i;         sent: C[c_i];   delta_i  = c_i - C[c_i]
//   s     = mean_i C[c_i] + delta; sent: C[s];     delta    = s - C[s];     mean = C[s]
//
// Every chunk has a scale of its own. 2 (ranks - 1) / ranks of the compressed vector leave a rank.
class CompressedMean final : public ChunkedSum {
 public:
  // code: kMeanSigns, kRmsSigns or kInt8.
  CompressedMean(const Communicator& ranks, WireCode code, std::int64_t n);

  // The next reduction turns x [n], which is finite, into the mean. `used` [n] or null, see
  // compress(), is the same on all ranks.
  void attach(float* x, const std::uint8_t* used);

  // Return the errors that this rank has not sent yet [n], and those left of its chunk of the mean.
  std::span<float> worker_error() { return floats_of(worker_error_); }
  std::span<float> server_error() { return floats_of(server_error_); }

  void write_addend(int to, std::byte* out) override;
  void read_addend(int from, const std::byte* in) override;
  void write_result(std::byte* out) override;
  void read_result(int owner, const std::byte* in) override;

 private:
  WireCode addend_code(int /*rank*/) const override { return code_; }
  WireCode result_code() const override { return code_; }
  const std::uint8_t* used(int owner) const {
    return used_ == nullptr ? nullptr : used_ + partition().begin(owner);
  }

  WireCode code_;
  Buffer worker_error_, server_error_;
  Buffer decoded_;  // an addend of the own chunk
  float* x_ = nullptr;
  const std::uint8_t* used_ = nullptr;
};

// Sums of votes: integers all the way, so that no order and no number of ranks changes a bit.
class VoteSum final : public ChunkedSum {
 public:
  // majority: the sign of the sum is the result.
  VoteSum(const Communicator& ranks, std::int64_t n, bool majority);

  // Forgets the votes. Every one of the `parts` casts one for each element at most.
  void begin(int parts);
  // [n]: the votes of this rank, to add to; after the reduction the sums, or their signs.
  std::int8_t* votes() const { return votes_.as<std::int8_t>(); }

  // Tells whether an element has votes that add up to 0.
  std::uint8_t note() const override;
  void read_note(int rank, std::uint8_t note) override {
    zeros_[static_cast<std::size_t>(rank)] = note;
  }
  void write_addend(int to, std::byte* out) override;
  void read_addend(int from, const std::byte* in) override;
  void write_result(std::byte* out) override;
  void read_result(int owner, const std::byte* in) override;

 private:
  WireCode addend_code(int rank) const override;
  WireCode result_code() const override { return vote_code(majority_ ? 1 : parts_, true); }

  bool majority_;
  int parts_ = 1;
  Buffer votes_;
  std::vector<std::uint8_t> zeros_;  // by rank
  Buffer addend_;
};

}  // namespace tritgrad
