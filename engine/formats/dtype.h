// Element types of stored planes, those of safetensors files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tritgrad {

enum class Dtype : std::uint8_t {
  kBool,
  kU8,
  kI8,
  kU16,
  kI16,
  kF16,
  kBf16,
  kU32,
  kI32,
  kF32,
  kU64,
  kI64,
  kF64,
};

std::string_view dtype_name(Dtype dtype);  // as in the file: "BF16"
std::size_t dtype_bytes(Dtype dtype);      // of one element
std::optional<Dtype> find_dtype(std::string_view name);

}  // namespace tritgrad
