// Floats of every part of a batch, made known to all ranks.
#pragma once

#include <vector>

#include "optim/parallel/lane.h"

namespace tritgrad {

class GatheredParts final : public Reduction {
 public:
  // `n` floats of each part.
  GatheredParts(const Communicator& ranks, std::int64_t n)
      : rank_(ranks.rank()), ranks_(ranks.size()), n_(n) {}

  // Forgets what was there; all parts are 0.
  void begin(int parts) {
    parts_ = parts;
    floats_.assign(static_cast<std::size_t>(parts * n_), 0.0f);
  }
  // [n]
  float* part(int index) { return floats_.data() + index * n_; }
  const std::vector<float>& all() const { return floats_; }
  int count() const { return parts_; }

  std::int64_t share_bytes(int /*from*/, int /*to*/) const override { return 0; }
  void write_share(int /*to*/, std::byte* /*out*/) override {}
  void read_share(int /*from*/, const std::byte* /*in*/) override {}
  std::int64_t result_bytes(int owner) const override;
  void write_result(std::byte* out) override;
  void read_result(int owner, const std::byte* in) override;

 private:
  int rank_, ranks_;
  std::int64_t n_;
  int parts_ = 0;
  std::vector<float> floats_;  // [parts x n]
};

}  // namespace tritgrad
