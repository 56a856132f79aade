#include "engine/data/npy.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "engine/check.h"
#include "engine/data/label_encoder.h"
#include "engine/files/read_file.h"

namespace tritgrad {
namespace {

// ---- The header of a .npy file: magic, version, a Python dictionary literal of three keys ----

struct NpyHeader {
  std::string descr;  // type, as in '<f4'
  bool fortran_order = false;
  std::vector<std::int64_t> extents;
  std::size_t bytes = 0;  // where the values begin
};

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxAxes = 32;  // as in NumPy

// Reads the literals that numpy.save writes: quoted strings, True and False, tuples of integers.
class LiteralReader {
 public:
  LiteralReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  bool accept(std::string_view token) {
    skip_blanks();
    if (!text_.substr(position_).starts_with(token)) return false;
    position_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    check(accept(token), where_, ": bad .npy header, ", token, " expected at character ", position_,
          "; write the file with numpy.save");
  }

  std::string string() {
    const char* quote = accept("\"") ? "\"" : "'";
    if (*quote == '\'') expect(quote);
    const std::size_t end = text_.find(*quote, position_);
    check(end != std::string_view::npos, where_,
          ": bad .npy header, a string is never closed; write the file with numpy.save");
    const std::string result(text_.substr(position_, end - position_));
    position_ = end + 1;
    return result;
  }

  bool boolean() {
    if (accept("True")) return true;
    expect("False");
    return false;
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> numbers;
    expect("(");
    while (!accept(")")) {
      check(numbers.size() < kMaxAxes, where_, ": bad .npy header, more than ", kMaxAxes, " axes");
      numbers.push_back(number());
      if (!accept(",")) {
        expect(")");
        break;
      }
    }
    return numbers;
  }

  bool at_end() {
    skip_blanks();
    return position_ == text_.size();
  }

 private:
  void skip_blanks() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) {
      ++position_;
    }
  }

  std::int64_t number() {
    skip_blanks();
    std::int64_t value = 0;
    const char* begin = text_.data() + position_;
    const auto [stop, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    check(error == std::errc() && value >= 0, where_,
          ": bad .npy header, the shape must hold integers from 0 to 2^63 - 1");
    position_ += static_cast<std::size_t>(stop - begin);
    return value;
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t position_ = 0;
};

void parse_dictionary(std::string_view text, const std::string& where, NpyHeader& header) {
  LiteralReader reader(text, where);
  bool has_descr = false, has_order = false, has_shape = false;
  reader.expect("{");
  while (!reader.accept("}")) {
    const std::string key = reader.string();
    bool* seen = key == "descr"           ? &has_descr
                 : key == "fortran_order" ? &has_order
                 : key == "shape"         ? &has_shape
                                          : nullptr;
    check(seen != nullptr && !*seen, where, ": bad .npy header, key '", key.substr(0, 20),
          "' is unknown or repeated; write the file with numpy.save");
    *seen = true;
    reader.expect(":");
    if (key == "shape") {
      header.extents = reader.tuple();
    } else if (key == "fortran_order") {
      header.fortran_order = reader.boolean();
    } else {
      check(!reader.accept("["), where,
            ": an array of records found, numbers expected; save one plain array");
      header.descr = reader.string();
    }
    if (!reader.accept(",")) {
      reader.expect("}");
      break;
    }
  }
  check(has_descr && has_order && has_shape, where,
        ": bad .npy header, descr, fortran_order and shape are all needed");
  check(reader.at_end(), where, ": bad .npy header, text follows the dictionary");
}

NpyHeader parse_npy_header(std::string_view bytes, const std::string& where) {
  check(bytes.starts_with(kMagic), where,
        ": this is not a .npy file (its first bytes are not \\x93NUMPY); write it with numpy.save");
  const std::size_t version_at = kMagic.size();
  check(bytes.size() > version_at + 2, where, ": the file ends in its header; it is truncated");
  const auto byte = [&](std::size_t i) {
    return std::size_t{static_cast<unsigned char>(bytes[version_at + i])};
  };
  check(byte(0) >= 1 && byte(0) <= 3, where, ": .npy format version ", byte(0),
        " found, 1 to 3 supported; write the file with numpy.save");
  const std::size_t length_bytes = byte(0) == 1 ? 2 : 4;
  const std::size_t begin = version_at + 2 + length_bytes;
  check(bytes.size() >= begin, where, ": the file ends in its header; it is truncated");
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= byte(2 + i) << (8 * i);
  check(length <= bytes.size() - begin, where, ": a header of ", length, " bytes is declared, ",
        bytes.size() - begin, " follow; the file is truncated");
  NpyHeader header;
  header.bytes = begin + length;
  parse_dictionary(bytes.substr(begin, length), where, header);
  return header;
}

// ---- Arrays and pairs of them ----

static_assert(std::endian::native == std::endian::little, "payloads are read as they are");

template <typename T>
double load(const char* payload, std::int64_t i) {
  T value;
  std::memcpy(&value, payload + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return static_cast<double>(value);
}

struct NumberType {
  const char* descr;  // as NumPy spells it
  std::int64_t bytes;
  double (*load)(const char* payload, std::int64_t i);
};

constexpr NumberType kTypes[] = {
    {"<f4", 4, load<float>},         {"<f8", 8, load<double>},
    {"|u1", 1, load<std::uint8_t>},  {"|b1", 1, load<std::uint8_t>},
    {"|i1", 1, load<std::int8_t>},   {"<i2", 2, load<std::int16_t>},
    {"<i4", 4, load<std::int32_t>},  {"<i8", 8, load<std::int64_t>},
    {"<u2", 2, load<std::uint16_t>}, {"<u4", 4, load<std::uint32_t>},
    {"<u8", 8, load<std::uint64_t>},
};

const NumberType& find_type(const std::string& descr, const std::string& where) {
  for (const NumberType& type : kTypes) {
    if (descr == type.descr) return type;
  }
  check(!descr.starts_with('>'), where, ": big-endian type '", descr,
        "' found, little-endian expected; save array.astype(array.dtype.newbyteorder('<'))");
  check(!descr.starts_with("|O"), where,
        ": an array of Python objects found, numbers expected; save array.astype('float32')");
  fail(where, ": type '", descr.substr(0, 20),
       "' found, a float of 4 or 8 bytes or an integer expected; save array.astype('float32')");
}

void copy_features(Dataset& dataset, const NpyArray& x, const std::string& where) {
  if (x.of_bytes) {
    std::memcpy(dataset.values.as<std::uint8_t>(), x.payload.data(), x.payload.size());
    return;
  }
  float* out = dataset.values.as<float>();
  for (std::int64_t i = 0; i < dataset.rows * dataset.features; ++i) {
    const double value = x.load(x.payload.data(), i);
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
    const double value = y.load(y.payload.data(), row);
    if (!(std::abs(value) < kExactIntegers) || value != std::floor(value)) {
      fail(where, ": the label of row ", row, " is ", value,
           ", integers below 2^53 expected; number the classes");
    }
    labels.add(std::to_string(static_cast<std::int64_t>(value)));
  }
  labels.finish(dataset, {});
}

}  // namespace

std::int64_t NpyArray::size() const {
  std::int64_t product = 1;
  for (std::int64_t extent : extents) product *= extent;
  return product;
}

NpyArray parse_npy(std::string_view bytes, const std::string& where) {
  const NpyHeader header = parse_npy_header(bytes, where);
  const NumberType& type = find_type(header.descr, where);
  // One axis has the same layout in both orders, and NumPy marks some such arrays as Fortran.
  check(!header.fortran_order || header.extents.size() < 2, where,
        ": Fortran (column) order found, C order expected; save numpy.ascontiguousarray(array)");
  NpyArray array{header.extents, bytes.substr(header.bytes), type.load,
                 type.load == load<std::uint8_t>};
  const auto payload = static_cast<std::int64_t>(array.payload.size());
  std::int64_t expected = type.bytes;
  for (std::int64_t extent : header.extents) {
    // An empty axis anywhere empties the array, but must not hide an overflow from the caller.
    check(extent > 0, where, ": the shape has an axis of length ", extent, ", the array is empty");
    check(extent <= payload / expected, where, ": ", payload,
          " bytes of values found, fewer than the shape needs; the file is truncated");
    expected *= extent;
  }
  check(payload == expected, where, ": ", payload, " bytes of values found, ", expected,
        " expected from the shape; ", payload < expected ? "the file is truncated" : "bytes trail");
  return array;
}

Dataset parse_npy_pair(std::string_view x, std::string_view y, const std::string& x_where,
                       const std::string& y_where) {
  const NpyArray features = parse_npy(x, x_where);
  const NpyArray labels = parse_npy(y, y_where);
  const bool bytes = features.of_bytes;
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
