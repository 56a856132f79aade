#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>

#include "engine/check.h"
#include "engine/data/label_encoder.h"
#include "engine/data/npy.h"
#include "engine/files/read_file.h"

namespace tritgrad {
namespace {

void copy_features(Dataset& dataset, const NpyArray& x, const std::string& where) {
  if (x.type == NpyArray::Type::kUint8) {
    std::memcpy(dataset.values.as<std::uint8_t>(), x.payload.data(), x.payload.size());
    return;
  }
  float* out = dataset.values.as<float>();
  for (std::int64_t i = 0; i < dataset.rows * dataset.features; ++i) {
    const double value = x.at(i);
    // Compared in double, because converting a larger value to float is undefined.
    if (!(std::abs(value) <= std::numeric_limits<float>::max())) {
      fail(where, ": row ", i / dataset.features, ", column ", i % dataset.features, " is ", value,
           ", finite fp32 numbers expected; fill or remove the row");
    }
    out[i] = static_cast<float>(value);
  }
}

void copy_labels(Dataset& dataset, const NpyArray& y, const std::string& where) {
  constexpr double kExactIntegers = 0x1p53;
  LabelEncoder labels(where);
  for (std::int64_t row = 0; row < dataset.rows; ++row) {
    const double value = y.at(row);
    if (!(std::abs(value) < kExactIntegers) || value != std::floor(value)) {
      fail(where, ": the label of row ", row, " is ", value,
           ", integers below 2^53 expected; number the classes");
    }
    labels.add(std::to_string(static_cast<std::int64_t>(value)));
  }
  labels.finish(dataset, {});
}

}  // namespace

Dataset parse_npy_pair(std::string_view x, std::string_view y, const std::string& x_where,
                       const std::string& y_where) {
  const NpyArray features = parse_npy(x, x_where);
  const NpyArray labels = parse_npy(y, y_where);
  const bool bytes = features.type == NpyArray::Type::kUint8;
  const std::size_t axes = features.extents.size();
  check(
      axes == 2 || (axes == 3 && bytes), x_where, ": an array of ", axes,
      " axes found, rows x features (or uint8 images: rows x height x width) expected; reshape it");
  const std::int64_t rows = features.extents[0];
  const bool flat =
      labels.extents.size() == 1 || (labels.extents.size() == 2 && labels.extents[1] == 1);
  check(flat, y_where, ": an array of ", labels.extents.size(),
        " axes found, one integer label per row expected; save numpy.argmax(y, axis=1) of one-hot ",
        "labels");
  check(labels.extents[0] == rows, x_where, " holds ", rows, " rows but ", y_where, " holds ",
        labels.extents[0], " labels; give files that belong together");
  Dataset dataset;
  dataset.name = x_where;
  if (axes == 3) dataset.image = {features.extents[1], features.extents[2], 1};
  dataset.allocate(rows, features.size() / rows, bytes ? Element::kByte : Element::kFloat32);
  copy_features(dataset, features, x_where);
  copy_labels(dataset, labels, y_where);
  return dataset;
}

Dataset read_npy_pair(const std::string& x_path, const std::string& y_path) {
  const std::string x = read_file(x_path);
  const std::string y = read_file(y_path);
  Dataset dataset = parse_npy_pair(x, y, x_path, y_path);
  dataset.name = std::filesystem::path(x_path).stem().string();
  return dataset;
}

}  // namespace tritgrad
