// Updates with error feedback in one pass where a weight is bare trits. Here the formats and the
// rules that have such a pass meet.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/formats/storage.h"
#include "engine/kernels/updates.h"
#include "optim/eco.h"
#include "optim/rule.h"

namespace tritgrad {

class FusedCarry {
 public:
  // Returns nothing unless the rule has such a pass, the weight is in trits, the first moment in
  // fp32 or int8, and the second, if any, in the format that the pass wants. Rule and storages must
  // outlive it.
  static std::optional<FusedCarry> of(const Rule& rule, const Storage& weight,
                                      std::span<Storage> moments);

  // Updates a block by its gradient.
  FlipCounts update(const Block& block, const float* grad, const EcoStep& eco,
                    const Descent& descent) const;

 private:
  const CarriesTrits* rule_ = nullptr;
  bool rounds_trits_ = false, rounds_m_ = false;  // by chance
  CarriedTrits first_{};
  Scalar* v_ = nullptr;  // of rules whose second moment is one number
  std::int64_t cols_ = 0, row_bytes_ = 0;
};

}  // namespace tritgrad
