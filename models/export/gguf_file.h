// Files in the format GGUF, version 3, as ggml reads them. All numbers are little-endian.
//
//     "GGUF", version (u32), number of tensors (u64), number of keys (u64)
//     keys       each a string, a type (u32) and a value; strings are a length (u64) and bytes
//     tensors    each a name, a number of axes (u32), the axes (u64), the row's first, a type
//                (u32), and where its bytes begin (u64), counted from where data begin
//     data       each tensor padded with zeros to a multiple of 32 bytes, as what is before them is
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/export/gguf_blocks.h"

namespace tritgrad {

inline constexpr std::size_t kGgufAlignment = 32;

class GgufWriter {
 public:
  // Keys, in the order of the calls.
  void add_u32(const std::string& key, std::int64_t value);
  void add_f32(const std::string& key, float value);
  void add_bool(const std::string& key, bool value);
  void add_text(const std::string& key, const std::string& value);
  void add_texts(const std::string& key, std::span<const std::string> values);
  void add_i32s(const std::string& key, std::span<const std::int32_t> values);
  void add_f32s(const std::string& key, std::span<const float> values);

  // Adds a tensor of rows, or, if `rows` is 0, of a single axis.
  void add_tensor(const std::string& name, std::int64_t rows, std::int64_t row_length,
                  GgufType type, const std::string& bytes);

  // Returns the bytes of the file.
  std::string bytes() const;

 private:
  void begin_key(const std::string& key, std::uint32_t type);
  void begin_array(const std::string& key, std::uint32_t type, std::size_t count);

  std::uint64_t keys_ = 0, tensors_ = 0;
  std::string metadata_, infos_;
  std::string data_;
};

}  // namespace tritgrad
