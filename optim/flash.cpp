#include "optim/flash.h"

#include <algorithm>

namespace tritgrad {
namespace {

bool is_nearest(const Storage& storage, FormatKind kind) {
  return storage.spec().kind == kind && storage.spec().rounding == Rounding::kNearest;
}

template <typename T>
T* plane(const Storage& storage, std::size_t index) {
  return reinterpret_cast<T*>(storage.planes()[index].bytes.data());
}

}  // namespace

std::optional<FlashPlanes> FlashPlanes::of(const Storage& weight,
                                           std::span<const Storage> moments) {
  constexpr FormatKind kMoments[] = {FormatKind::kCompanded8, FormatKind::kRoot8};
  if (!is_nearest(weight, FormatKind::kSplit24)) return std::nullopt;
  if (moments.empty() || moments.size() > std::size(kMoments)) return std::nullopt;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    if (!is_nearest(moments[i], kMoments[i])) return std::nullopt;
  }
  FlashPlanes planes;
  planes.cols_ = weight.shape().cols();
  const bool two = moments.size() > 1;
  planes.first_ = {.grad = nullptr,
                   .bf16_grad = nullptr,
                   .value = plane<std::uint16_t>(weight, 0),
                   .correction = plane<std::int8_t>(weight, 1),
                   .m = plane<std::int8_t>(moments[0], 0),
                   .m_scales = plane<std::uint16_t>(moments[0], 1),
                   .v = two ? plane<std::uint8_t>(moments[1], 0) : nullptr,
                   .v_scales = two ? plane<std::uint16_t>(moments[1], 1) : nullptr};
  return planes;
}

// Groups end with a row, so other rows follow on only where a row is whole groups. A pass takes
// whole steps; what a single row has beyond them is left over.
std::int64_t FlashPlanes::rows_together(std::int64_t rows) const {
  if (cols_ % kFlashStep == 0 || cols_ < kCompandedGroup) return rows;
  if (cols_ % kCompandedGroup == 0) {
    constexpr std::int64_t kEven = kFlashStep / kCompandedGroup;
    return std::max<std::int64_t>(1, rows / kEven * kEven);
  }
  return cols_ < kFlashStep ? rows : 1;
}

std::optional<FlashElements> FlashPlanes::at(std::int64_t row_begin, std::int64_t row_end,
                                             std::int64_t col_begin, std::int64_t col_end) const {
  const bool whole_rows = col_begin == 0 && col_end == cols_ && cols_ % kCompandedGroup == 0;
  if (row_end - row_begin > 1 && !whole_rows) return std::nullopt;
  const std::int64_t groups_per_row = (cols_ + kCompandedGroup - 1) / kCompandedGroup;
  const std::int64_t element = row_begin * cols_ + col_begin;
  const std::int64_t group = row_begin * groups_per_row + col_begin / kCompandedGroup;
  FlashElements here = first_;
  here.value += element;
  here.correction += element;
  here.m += element;
  here.m_scales += group;
  if (here.v != nullptr) {
    here.v += element;
    here.v_scales += group;
  }
  return here;
}

}  // namespace tritgrad
