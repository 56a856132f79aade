#include "optim/fused_split24.h"

#include <algorithm>

namespace tritgrad {
namespace {

bool is_nearest(const Storage& storage, FormatKind kind) {
  return storage.spec().kind == kind && storage.spec().rounding == Rounding::kNearest;
}

std::int64_t groups_of_row(std::int64_t cols) {
  return (cols + kCompandedGroup - 1) / kCompandedGroup;
}

template <typename T>
T* elements(const Storage& storage, std::size_t plane) {
  return reinterpret_cast<T*>(storage.planes()[plane].bytes.data());
}

}  // namespace

std::optional<FusedSplit24> FusedSplit24::of(const Rule& rule, const Storage& weight,
                                             std::span<const Storage> moments) {
  const auto* fuses = dynamic_cast<const FusesSplit24*>(&rule);
  if (fuses == nullptr || !is_nearest(weight, FormatKind::kSplit24)) return std::nullopt;
  if (moments.empty() || moments.size() > 2) return std::nullopt;
  if (!is_nearest(moments[0], FormatKind::kCompanded8)) return std::nullopt;
  if (moments.size() > 1 && !is_nearest(moments[1], FormatKind::kRoot8)) return std::nullopt;
  FusedSplit24 fused;
  fused.rule_ = fuses;
  fused.cols_ = weight.shape().cols();
  FlashElements& first = fused.first_;
  first.value = elements<std::uint16_t>(weight, Split24::kValuePlane);
  first.correction = elements<std::int8_t>(weight, Split24::kCorrectionPlane);
  first.m = elements<std::int8_t>(moments[0], Companded8::kCodePlane);
  first.m_scales = elements<std::uint16_t>(moments[0], Companded8::kScalePlane);
  if (moments.size() == 1) return fused;
  first.v = elements<std::uint8_t>(moments[1], Root8::kCodePlane);
  first.v_scales = elements<std::uint16_t>(moments[1], Root8::kScalePlane);
  return fused;
}

// Groups end with a row, so other rows follow on only where a row is whole groups. A pass takes
// whole steps; what a single row has beyond them is left over.
std::int64_t FusedSplit24::rows_together(std::int64_t rows) const {
  if (cols_ % kFlashStep == 0) return rows;
  if (cols_ % kCompandedGroup == 0) {
    constexpr std::int64_t kEven = kFlashStep / kCompandedGroup;
    return std::max<std::int64_t>(1, rows / kEven * kEven);
  }
  return cols_ < kFlashStep ? rows : 1;
}

std::optional<FlashElements> FusedSplit24::at(const Chunk& chunk) const {
  const bool whole_rows = chunk.cols() == cols_ && cols_ % kCompandedGroup == 0;
  if (chunk.rows() > 1 && !whole_rows) return std::nullopt;
  const std::int64_t element = chunk.row_begin * cols_ + chunk.col_begin;
  const std::int64_t group =
      chunk.row_begin * groups_of_row(cols_) + chunk.col_begin / kCompandedGroup;
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
