// Element types of stored planes, named as in safetensors files.
#pragma once

#include <cstdint>

namespace tritgrad {

enum class DType { kU8, kI8, kU16, kBF16, kF16, kF32, kF64, kI32, kU32, kI64, kU64 };

constexpr std::int64_t dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::kU8:
    case DType::kI8:
      return 1;
    case DType::kU16:
    case DType::kBF16:
    case DType::kF16:
      return 2;
    case DType::kF32:
    case DType::kI32:
    case DType::kU32:
      return 4;
    case DType::kF64:
    case DType::kI64:
    case DType::kU64:
      return 8;
  }
  return 0;
}

}  // namespace tritgrad
