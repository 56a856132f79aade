// Registers of bytes, and the sums of their products.
#pragma once

#include "ops/kernels/simd-inl.h"
#include "ops/kernels/unrolled-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

using Bytes = I32::register_type;
// Sums have the type of their numbers: with that of the intrinsics g++ 12 copies every one before
// or after each instruction.
using Sums16 [[gnu::vector_size(sizeof(Bytes))]] = std::int16_t;
using Sums32 [[gnu::vector_size(sizeof(Bytes))]] = std::int32_t;

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
