// Updates in one pass where a weight and its moments are in FlashOptim's formats: where the passes
// of the kernel table find their elements.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/formats/storage.h"
#include "engine/kernels/updates.h"

namespace tritgrad {

class FlashPlanes {
 public:
  // Of a weight in split24 and moments in companded8 and root8, in that order, all rounded to
  // nearest; nothing for any other. The storages must outlive it.
  static std::optional<FlashPlanes> of(const Storage& weight, std::span<const Storage> moments);

  // Of `rows` whole rows, or the same columns of them, how many to update together.
  std::int64_t rows_together(std::int64_t rows) const;
  // Columns [col_begin, col_end), from the begin of a group on, of rows [row_begin, row_end),
  // without a gradient; nothing unless they are neighbours, groups and all.
  std::optional<FlashElements> at(std::int64_t row_begin, std::int64_t row_end,
                                  std::int64_t col_begin, std::int64_t col_end) const;

 private:
  FlashElements first_{};
  std::int64_t cols_ = 0;
};

}  // namespace tritgrad
