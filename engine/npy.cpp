#include "engine/npy.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "engine/check.h"
#include "engine/label_encoder.h"
#include "engine/read_file.h"

namespace tritgrad {
namespace {

// The value of a key in the header, a Python dictionary such as
// {'descr': '<f4', 'fortran_order': False, 'shape': (150, 4), }
std::string_view dictionary_value(std::string_view header, std::string_view key,
                                  const std::string& where) {
  const std::string quoted = concat("'", key, "'");
  const std::size_t found = header.find(quoted);
  check(found != std::string_view::npos, where, ": the header has no '", key, "'");
  const std::size_t colon = header.find(':', found + quoted.size());
  check(colon != std::string_view::npos, where, ": the header is damaged after '", key, "'");
  const std::size_t begin = header.find_first_not_of(' ', colon + 1);
  check(begin != std::string_view::npos, where, ": the header is damaged after '", key, "'");
  const char close = header[begin] == '(' ? ')' : ',';
  const std::size_t end = header.find(close, begin);
  check(end != std::string_view::npos, where, ": the header is damaged after '", key, "'");
  return header.substr(begin, end - begin + (close == ')' ? 1 : 0));
}

std::vector<std::int64_t> parse_shape(std::string_view text, const std::string& where) {
  std::vector<std::int64_t> shape;
  check(text.size() >= 2 && text.front() == '(' && text.back() == ')', where,
        ": the header's 'shape' is not a tuple");
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const std::size_t begin = text.find_first_not_of(" ,");
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    std::int64_t extent = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    check(error == std::errc() && extent >= 0, where, ": the header's 'shape' has an extent that is no "
          "whole number of at least 0");
    shape.push_back(extent);
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  }
  return shape;
}

template <typename T>
double read_as(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return static_cast<double>(value);
}

using Reader = double (*)(const char*);

Reader reader_of(std::string_view descr, std::size_t& size, const std::string& where) {
  static constexpr struct {
    std::string_view name;
    std::size_t size;
    Reader read;
  } kTypes[] = {
      {"f4", 4, read_as<float>},         {"f8", 8, read_as<double>},
      {"u1", 1, read_as<std::uint8_t>},  {"i1", 1, read_as<std::int8_t>},
      {"b1", 1, read_as<std::uint8_t>},  {"u2", 2, read_as<std::uint16_t>},
      {"i2", 2, read_as<std::int16_t>},  {"u4", 4, read_as<std::uint32_t>},
      {"i4", 4, read_as<std::int32_t>},  {"u8", 8, read_as<std::uint64_t>},
      {"i8", 8, read_as<std::int64_t>}};
  check(descr.size() == 5 && descr.front() == '\'' && descr.back() == '\'', where, ": element type ",
        descr, " is not supported; save plain numbers (float32, float64 or integers)");
  check(descr[1] != '>', where, ": big-endian element type ", descr,
        " is not supported; save with astype('<f4')");
  for (const auto& type : kTypes) {
    if (descr.substr(2, 2) == type.name) {
      size = type.size;
      return type.read;
    }
  }
  fail(where, ": element type ", descr, " is not supported; save float32, float64 or integers");
}

}  // namespace

NpyArray parse_npy(std::string_view file, const std::string& where) {
  check(file.size() >= 10 && file.starts_with("\x93NUMPY"), where, ": this is not an .npy file");
  const int version = file[6];
  check(version == 1 || version == 2, where, ": .npy version ", version, " is not supported, expected 1 or 2");
  const std::size_t prefix = version == 1 ? 10 : 12;
  check(file.size() >= prefix, where, ": the file is truncated in its header");
  std::size_t length = 0;
  for (std::size_t i = prefix; i-- > 8;) length = length << 8 | static_cast<unsigned char>(file[i]);
  check(length <= file.size() - prefix, where, ": the file is truncated in its header");
  const std::string_view header = file.substr(prefix, length);

  std::size_t size = 0;
  const Reader read = reader_of(dictionary_value(header, "descr", where), size, where);
  check(dictionary_value(header, "fortran_order", where) == "False", where,
        ": Fortran order is not supported; save np.ascontiguousarray(x)");
  NpyArray array;
  array.shape = parse_shape(dictionary_value(header, "shape", where), where);
  std::size_t bytes = size;
  for (std::int64_t extent : array.shape) {
    check(!__builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes), where,
          ": the product of its shape overflows");
  }
  const std::string_view body = file.substr(prefix + length);
  check(body.size() == bytes, where, ": ", body.size(), " bytes of data found, expected ", bytes,
        "; the file is truncated or has bytes left over");
  array.values.reserve(bytes / size);
  for (std::size_t i = 0; i < bytes; i += size) array.values.push_back(read(body.data() + i));
  return array;
}

Dataset read_npy_pair(const std::string& features_path, const std::string& labels_path) {
  const NpyArray features = parse_npy(read_file(features_path), features_path);
  const NpyArray labels = parse_npy(read_file(labels_path), labels_path);
  check(features.shape.size() == 2, features_path, ": ", features.shape.size(),
        " axes found, expected 2 (rows x features)");
  check(labels.shape.size() == 1, labels_path, ": ", labels.shape.size(), " axes found, expected 1 (rows)");
  check(labels.shape[0] == features.shape[0], labels_path, ": ", labels.shape[0],
        " labels found, expected ", features.shape[0], ", one for each row of ", features_path);

  Dataset dataset;
  dataset.name = features_path;
  dataset.allocate(features.shape[0], features.shape[1], Element::kFloat32);
  for (std::size_t i = 0; i < features.values.size(); ++i) {
    const float value = static_cast<float>(features.values[i]);
    check(std::isfinite(value), features_path, ": row ", static_cast<std::int64_t>(i) / dataset.features,
          ", column ", static_cast<std::int64_t>(i) % dataset.features, ": ", features.values[i],
          " is not a finite number; remove the row or replace the value");
    dataset.values.as<float>()[i] = value;
  }
  LabelEncoder encoder(labels_path);
  for (std::size_t i = 0; i < labels.values.size(); ++i) {
    const double label = labels.values[i];
    check(label == std::floor(label) && std::abs(label) < 1e15, labels_path, ": label ", label,
          " of row ", i, " is not a whole number");
    encoder.add(std::to_string(static_cast<std::int64_t>(label)));
  }
  encoder.finish(dataset, {});
  return dataset;
}

}  // namespace tritgrad
