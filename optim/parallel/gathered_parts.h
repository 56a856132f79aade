// Floats of every part of a batch, made known to all ranks.
#pragma once

#include <algorithm>
#include <span>

#include "optim/parallel/lane.h"
#include "optim/parallel/message.h"

namespace tritgrad {

class GatheredParts final : public Reduction {
 public:
  // `n` floats of each part.
  GatheredParts(const Communicator& ranks, std::int64_t n)
      : rank_(ranks.rank()), ranks_(ranks.size()), n_(n) {}

  // Forgets what was there; all parts are 0.
  void begin(int parts) {
    parts_ = parts;
    floats_.resize(static_cast<std::size_t>(parts * n_) * sizeof(float));
    std::fill_n(part(0), parts * n_, 0.0f);
  }
  // [n]
  float* part(int index) { return begin_of(index); }
  const float* part(int index) const { return begin_of(index); }
  int count() const { return parts_; }

  std::int64_t share_bytes(int /*from*/, int /*to*/) const override { return 0; }
  void write_share(int /*to*/, std::byte* /*out*/) override {}
  void read_share(int /*from*/, const std::byte* /*in*/) override {}
  std::int64_t result_bytes(int owner) const override;
  void write_result(std::byte* out) override;
  void read_result(int owner, const std::byte* in) override;

 private:
  float* begin_of(int index) const { return reinterpret_cast<float*>(floats_.data()) + index * n_; }

  int rank_, ranks_;
  std::int64_t n_;
  int parts_ = 0;
  Message floats_;  // [parts x n]
};

}  // namespace tritgrad
