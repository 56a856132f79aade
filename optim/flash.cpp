#include "optim/flash.h"

#include <algorithm>

#include "engine/check.h"

namespace tritgrad {
namespace {

bool is_nearest(const Storage& storage, FormatKind kind) {
  return storage.spec().kind == kind && storage.spec().rounding == Rounding::kNearest;
}

std::int64_t groups_of_row(std::int64_t cols) {
  return (cols + kCompandedGroup - 1) / kCompandedGroup;
}

// The plane of that name, if its elements are what the passes take them for.
template <typename T>
T* plane(const Storage& storage, std::string_view name, Dtype dtype, std::int64_t count) {
  for (const Plane& plane : storage.planes()) {
    const PlaneSpec& spec = plane.spec;
    if (spec.name == name && spec.dtype == dtype && spec.count == count) {
      return reinterpret_cast<T*>(plane.bytes.data());
    }
  }
  fail("FlashPlanes: format ", format_name(storage.spec().kind), " has no plane '", name, "' with ",
       count, " elements of ", dtype_name(dtype), "; flash-inl.h must be changed with a format");
}

}  // namespace

std::optional<FlashPlanes> FlashPlanes::of(const Storage& weight,
                                           std::span<const Storage> moments) {
  if (!is_nearest(weight, FormatKind::kSplit24)) return std::nullopt;
  if (moments.empty() || moments.size() > 2) return std::nullopt;
  if (!is_nearest(moments[0], FormatKind::kCompanded8)) return std::nullopt;
  if (moments.size() > 1 && !is_nearest(moments[1], FormatKind::kRoot8)) return std::nullopt;
  const Shape& shape = weight.shape();
  const std::int64_t size = shape.size(), groups = shape.rows() * groups_of_row(shape.cols());
  FlashPlanes planes;
  planes.cols_ = shape.cols();
  FlashElements& first = planes.first_;
  first.value = plane<std::uint16_t>(weight, "value", Dtype::kBf16, size);
  first.correction = plane<std::int8_t>(weight, "correction", Dtype::kI8, size);
  first.m = plane<std::int8_t>(moments[0], "code", Dtype::kI8, size);
  first.m_scales = plane<std::uint16_t>(moments[0], "scale", Dtype::kU16, groups);
  if (moments.size() == 1) return planes;
  first.v = plane<std::uint8_t>(moments[1], "code", Dtype::kU8, size);
  first.v_scales = plane<std::uint16_t>(moments[1], "scale", Dtype::kU16, groups);
  return planes;
}

// Groups end with a row, so other rows follow on only where a row is whole groups. A pass takes
// whole steps; what a single row has beyond them is left over.
std::int64_t FlashPlanes::rows_together(std::int64_t rows) const {
  if (cols_ % kFlashStep == 0) return rows;
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
  const std::int64_t element = row_begin * cols_ + col_begin;
  const std::int64_t group = row_begin * groups_of_row(cols_) + col_begin / kCompandedGroup;
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
