// Updates in one pass where a weight is in split24 and its moments are in companded8 and root8, the
// formats of FlashOptim. Here the formats and the rules that have such a pass meet.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/formats/storage.h"
#include "engine/kernels/updates.h"
#include "optim/chunks.h"
#include "optim/rule.h"

namespace tritgrad {

class FusedSplit24 {
 public:
  // Returns nothing unless the rule has such a pass, the weight is in split24, its moments are in
  // companded8 and root8, in that order, and all round to nearest. Rule and storages must outlive
  // it.
  static std::optional<FusedSplit24> of(const Rule& rule, const Storage& weight,
                                        std::span<const Storage> moments);

  // Returns how many of so many rows to update together, whole or the same columns of them.
  std::int64_t rows_together(std::int64_t rows) const;
  // Returns where the elements of a chunk lie, without a gradient; nothing unless they are
  // neighbours, groups of the moments and all. The chunk begins where a group does.
  std::optional<FlashElements> at(const Chunk& chunk) const;
  // Updates n neighbours. Returns false, with nothing changed, if the pass cannot: for such numbers
  // (engine/kernels/updates.h), or for the rule's settings.
  bool update(const FlashElements& at, float lr, std::int64_t n) const {
    return rule_->update_split24(at, lr, n);
  }

 private:
  const FusesSplit24* rule_ = nullptr;
  FlashElements first_{};
  std::int64_t cols_ = 0;
};

}  // namespace tritgrad
