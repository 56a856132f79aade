// Reads GGUF files, with the block types that we write, as ggml decodes them.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/check.h"
#include "engine/formats/half_bits.h"

namespace tritgrad::test {

using GgufValue = std::variant<std::uint32_t, float, bool, std::string, std::vector<std::string>,
                               std::vector<std::int32_t>, std::vector<float>>;

struct GgufTensor {
  std::string name;
  std::vector<std::uint64_t> axes;  // the row's first
  std::uint32_t type;
  std::uint64_t offset;
  std::vector<float> numbers;
};

struct GgufContents {
  std::map<std::string, GgufValue> keys;
  std::vector<GgufTensor> tensors;

  template <typename Value>
  Value at(const std::string& key) const {
    const auto found = keys.find(key);
    check(found != keys.end(), "no key ", key);
    return std::get<Value>(found->second);
  }
  const GgufTensor& tensor(const std::string& name) const {
    for (const GgufTensor& each : tensors) {
      if (each.name == name) return each;
    }
    fail("no tensor ", name);
  }
};

// Takes numbers from the front of bytes.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  std::string_view take(std::uint64_t n) {
    check(n <= bytes_.size() - at_, "the file ends at ", bytes_.size());
    at_ += n;
    return bytes_.substr(at_ - n, n);
  }
  template <typename Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof(Number)).data(), sizeof(Number));
    return value;
  }
  std::string text() { return std::string(take(number<std::uint64_t>())); }
  template <typename Number>
  std::vector<Number> numbers(std::uint64_t n) {
    std::vector<Number> values(n);
    std::memcpy(values.data(), take(n * sizeof(Number)).data(), n * sizeof(Number));
    return values;
  }
  void pad() { take((32 - at_ % 32) % 32); }
  std::string_view rest() { return bytes_.substr(at_); }

 private:
  std::string_view bytes_;
  std::uint64_t at_ = 0;
};

inline GgufValue read_gguf_array(ByteReader& in) {
  const auto type = in.number<std::uint32_t>();
  const auto count = in.number<std::uint64_t>();
  if (type == 5) return in.numbers<std::int32_t>(count);
  if (type == 6) return in.numbers<float>(count);
  check(type == 8, "arrays of type ", type, " are not read");
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < count; ++i) texts.push_back(in.text());
  return texts;
}

inline GgufValue read_gguf_value(ByteReader& in) {
  switch (const auto type = in.number<std::uint32_t>()) {
    case 4:
      return in.number<std::uint32_t>();
    case 6:
      return in.number<float>();
    case 7:
      return in.number<std::uint8_t>() != 0;
    case 8:
      return in.text();
    case 9:
      return read_gguf_array(in);
    default:
      fail("values of type ", type, " are not read");
  }
}

// ---- blocks, as dequantize_row_* of ggml ----

inline float half_at(const std::uint8_t* bytes) {
  return float_of_half(static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8));
}

// Appends the digit of weight 3^(4 - n) of each of `count` bytes, less 1, times d.
inline void append_digits(std::vector<float>& out, const std::uint8_t* bytes, int count, int n,
                          float d) {
  const std::uint8_t powers[] = {1, 3, 9, 27, 81};
  for (int i = 0; i < count; ++i) {
    const auto shifted = static_cast<std::uint8_t>(bytes[i] * powers[n]);
    out.push_back(d * static_cast<float>((shifted * 3 >> 8) - 1));
  }
}

inline void decode_tq1_0(std::vector<float>& out, const std::uint8_t* block) {
  const float d = half_at(block + 52);
  for (int n = 0; n < 5; ++n) append_digits(out, block, 32, n, d);
  for (int n = 0; n < 5; ++n) append_digits(out, block + 32, 16, n, d);
  for (int n = 0; n < 4; ++n) append_digits(out, block + 48, 4, n, d);
}

inline void decode_tq2_0(std::vector<float>& out, const std::uint8_t* block) {
  const float d = half_at(block + 64);
  for (int first = 0; first < 64; first += 32) {
    for (int shift = 0; shift < 8; shift += 2) {
      for (int i = 0; i < 32; ++i) {
        out.push_back(d * static_cast<float>((block[first + i] >> shift & 3) - 1));
      }
    }
  }
}

inline void decode_q2_0(std::vector<float>& out, const std::uint8_t* block) {
  const float d = half_at(block);
  for (int i = 0; i < 64; ++i) {
    out.push_back(d * static_cast<float>((block[2 + i / 4] >> 2 * (i % 4) & 3) - 1));
  }
}

inline std::vector<float> decode_gguf(std::uint32_t type, std::string_view bytes,
                                      std::uint64_t count) {
  struct Kind {
    std::uint32_t type;
    std::uint64_t numbers, bytes;
    void (*decode)(std::vector<float>& out, const std::uint8_t* block);
  };
  const Kind kinds[] = {
      {0, 1, 4,
       [](std::vector<float>& out, const std::uint8_t* at) {
         std::memcpy(&out.emplace_back(), at, sizeof(float));
       }},
      {1, 1, 2,
       [](std::vector<float>& out, const std::uint8_t* at) { out.push_back(half_at(at)); }},
      {34, 256, 54, decode_tq1_0},
      {35, 256, 66, decode_tq2_0},
      {42, 64, 18, decode_q2_0}};
  for (const Kind& kind : kinds) {
    if (kind.type != type) continue;
    check(count % kind.numbers == 0, count, " numbers are no blocks of ", kind.numbers);
    check(count / kind.numbers * kind.bytes <= bytes.size(), "a tensor ends behind the file");
    std::vector<float> out;
    for (const char* at = bytes.data(); out.size() < count; at += kind.bytes) {
      kind.decode(out, reinterpret_cast<const std::uint8_t*>(at));
    }
    return out;
  }
  fail("tensors of type ", type, " are not read");
}

inline GgufContents read_gguf(std::string_view bytes) {
  ByteReader in(bytes);
  check(in.take(4) == "GGUF", "no GGUF file");
  check(in.number<std::uint32_t>() == 3, "another version than 3");
  const auto tensors = in.number<std::uint64_t>(), keys = in.number<std::uint64_t>();
  GgufContents file;
  for (std::uint64_t i = 0; i < keys; ++i) {
    const std::string key = in.text();
    check(file.keys.emplace(key, read_gguf_value(in)).second, "two keys ", key);
  }
  for (std::uint64_t i = 0; i < tensors; ++i) {
    GgufTensor& tensor = file.tensors.emplace_back();
    tensor.name = in.text();
    const auto axes = in.number<std::uint32_t>();
    tensor.axes = in.numbers<std::uint64_t>(axes);
    tensor.type = in.number<std::uint32_t>();
    tensor.offset = in.number<std::uint64_t>();
  }
  in.pad();
  for (GgufTensor& tensor : file.tensors) {
    check(tensor.offset % 32 == 0 && tensor.offset < in.rest().size(), tensor.name,
          " does not begin in the file at a multiple of 32");
    std::uint64_t count = 1;
    for (const std::uint64_t axis : tensor.axes) count *= axis;
    tensor.numbers = decode_gguf(tensor.type, in.rest().substr(tensor.offset), count);
  }
  return file;
}

}  // namespace tritgrad::test
