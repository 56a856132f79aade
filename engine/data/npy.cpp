#include "engine/data/npy.h"

#include <bit>
#include <cstring>

#include "engine/check.h"
#include "engine/data/npy_header.h"

namespace tritgrad {
namespace {

static_assert(std::endian::native == std::endian::little, "payloads are read as they are");

struct TypeInfo {
  const char* descr;
  NpyArray::Type type;
  std::int64_t bytes;
};

constexpr TypeInfo kTypes[] = {
    {"<f4", NpyArray::Type::kFloat32, 4}, {"<f8", NpyArray::Type::kFloat64, 8},
    {"|u1", NpyArray::Type::kUint8, 1},   {"|b1", NpyArray::Type::kUint8, 1},
    {"|i1", NpyArray::Type::kInt8, 1},    {"<i2", NpyArray::Type::kInt16, 2},
    {"<i4", NpyArray::Type::kInt32, 4},   {"<i8", NpyArray::Type::kInt64, 8},
    {"<u2", NpyArray::Type::kUint16, 2},  {"<u4", NpyArray::Type::kUint32, 4},
    {"<u8", NpyArray::Type::kUint64, 8},
};

const TypeInfo& find_type(const std::string& descr, const std::string& where) {
  for (const TypeInfo& info : kTypes) {
    if (descr == info.descr) return info;
  }
  check(!descr.starts_with('>'), where, ": big-endian type '", descr,
        "' found, little-endian expected; save array.astype(array.dtype.newbyteorder('<'))");
  check(!descr.starts_with("|O"), where,
        ": an array of Python objects found, numbers expected; save array.astype('float32')");
  fail(where, ": type '", descr.substr(0, 20),
       "' found, a float of 4 or 8 bytes or an integer expected; save array.astype('float32')");
}

template <typename T>
double load(const char* payload, std::int64_t i) {
  T value;
  std::memcpy(&value, payload + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return static_cast<double>(value);
}

}  // namespace

std::int64_t NpyArray::size() const {
  std::int64_t product = 1;
  for (std::int64_t extent : extents) product *= extent;
  return product;
}

double NpyArray::at(std::int64_t i) const {
  switch (type) {
    case Type::kFloat32:
      return load<float>(payload.data(), i);
    case Type::kFloat64:
      return load<double>(payload.data(), i);
    case Type::kInt8:
      return load<std::int8_t>(payload.data(), i);
    case Type::kInt16:
      return load<std::int16_t>(payload.data(), i);
    case Type::kInt32:
      return load<std::int32_t>(payload.data(), i);
    case Type::kInt64:
      return load<std::int64_t>(payload.data(), i);
    case Type::kUint8:
      return load<std::uint8_t>(payload.data(), i);
    case Type::kUint16:
      return load<std::uint16_t>(payload.data(), i);
    case Type::kUint32:
      return load<std::uint32_t>(payload.data(), i);
    case Type::kUint64:
      return load<std::uint64_t>(payload.data(), i);
  }
  fail("NpyArray: unknown type");
}

NpyArray parse_npy(std::string_view bytes, const std::string& where) {
  const NpyHeader header = parse_npy_header(bytes, where);
  const TypeInfo& info = find_type(header.descr, where);
  // One axis has the same layout in both orders, and NumPy marks some such arrays as Fortran.
  check(!header.fortran_order || header.extents.size() < 2, where,
        ": Fortran (column) order found, C order expected; save numpy.ascontiguousarray(array)");
  NpyArray array{info.type, header.extents, bytes.substr(header.bytes)};
  const auto payload = static_cast<std::int64_t>(array.payload.size());
  std::int64_t expected = info.bytes;
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

}  // namespace tritgrad
