#include "tools/c/arrays.h"

#include <span>

#include "engine/check.h"

namespace tritgrad {

NpyArray view_values(const void* values, tg_type type, std::int64_t rows, std::int64_t features,
                     const ImageShape& image) {
  check(values != nullptr || rows == 0 || features == 0, "values: NULL found, numbers expected");
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  check(rows >= 0 && features >= 0 && rows <= kMost && features <= kMost &&
            (features == 0 || rows <= kMost / features),
        "rows ", rows, ", features ", features, ": sizes from 0 on expected, and at most ", kMost,
        " numbers");
  check(type == TG_FLOAT32 || type == TG_FLOAT64 || type == TG_UINT8, "type ",
        static_cast<int>(type), " found, TG_FLOAT32, TG_FLOAT64 or TG_UINT8 expected");
  const char* descr = type == TG_FLOAT32 ? "<f4" : type == TG_FLOAT64 ? "<f8" : "|u1";
  const std::int64_t bytes = type == TG_FLOAT32 ? 4 : type == TG_FLOAT64 ? 8 : 1;
  const bool grey = type == TG_UINT8 && image.size() == features && image.channels == 1;
  const std::vector<std::int64_t> extents =
      grey ? std::vector{rows, image.height, image.width} : std::vector{rows, features};
  return view_npy(
      extents,
      {static_cast<const char*>(values), static_cast<std::size_t>(rows * features * bytes)}, descr,
      "values");
}

namespace {

template <typename Number>
NpyArray view_numbers(const Number* numbers, std::int64_t rows, const char* descr,
                      const char* what) {
  check(numbers != nullptr, what, ": NULL found, a number for each row expected");
  return view_npy(
      {rows},
      {reinterpret_cast<const char*>(numbers), static_cast<std::size_t>(rows) * sizeof(Number)},
      descr, what);
}

}  // namespace

NpyArray view_labels(const std::int64_t* labels, std::int64_t rows, const char* what) {
  return view_numbers(labels, rows, "<i8", what);
}
NpyArray view_targets(const double* targets, std::int64_t rows, const char* what) {
  return view_numbers(targets, rows, "<f8", what);
}

}  // namespace tritgrad
