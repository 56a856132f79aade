#include "tools/c/arrays.h"

#include <algorithm>
#include <initializer_list>

#include "engine/check.h"

namespace tritgrad {

namespace {

// A type as NumPy spells it.
struct NumberType {
  const char* descr;
  std::int64_t bytes;
};

// Throws Error for what is none of `known`, which `names` tells.
NumberType checked_type(tg_type type, const char* what, std::initializer_list<tg_type> known,
                        const char* names) {
  constexpr NumberType kTypes[] = {{"<f4", 4}, {"<f8", 8}, {"|u1", 1}, {"<i4", 4}, {"<i8", 8}};
  check(std::find(known.begin(), known.end(), type) != known.end(), what, " ",
        static_cast<int>(type), " found, ", names, " expected");
  return kTypes[type];
}

// Views a number for each row.
NpyArray view_column(const void* numbers, const NumberType& type, std::int64_t rows,
                     const char* what) {
  check(numbers != nullptr, what, ": NULL found, a number for each row expected");
  return view_npy({rows},
                  {static_cast<const char*>(numbers), static_cast<std::size_t>(rows * type.bytes)},
                  type.descr, what);
}

}  // namespace

NpyArray view_values(const void* values, tg_type type, std::int64_t rows, std::int64_t features,
                     const ImageShape& image) {
  check(values != nullptr || rows == 0 || features == 0, "values: NULL found, numbers expected");
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  check(rows >= 0 && features >= 0 && rows <= kMost && features <= kMost &&
            (features == 0 || rows <= kMost / features),
        "rows ", rows, ", features ", features, ": sizes from 0 on expected, and at most ", kMost,
        " numbers");
  const NumberType number = checked_type(type, "type", {TG_FLOAT32, TG_FLOAT64, TG_UINT8},
                                         "TG_FLOAT32, TG_FLOAT64 or TG_UINT8");
  const bool grey = type == TG_UINT8 && image.size() == features && image.channels == 1;
  const std::vector<std::int64_t> extents =
      grey ? std::vector{rows, image.height, image.width} : std::vector{rows, features};
  return view_npy(
      extents,
      {static_cast<const char*>(values), static_cast<std::size_t>(rows * features * number.bytes)},
      number.descr, "values");
}

NpyArray view_labels(const void* labels, tg_type type, std::int64_t rows) {
  return view_column(labels,
                     checked_type(type, "label_type", {TG_INT64, TG_INT32, TG_UINT8},
                                  "TG_INT64, TG_INT32 or TG_UINT8"),
                     rows, "labels");
}

NpyArray view_targets(const double* targets, std::int64_t rows) {
  return view_column(targets, {"<f8", sizeof(double)}, rows, "targets");
}

}  // namespace tritgrad
