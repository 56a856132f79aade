// Registers of bytes, and the sums of their products.
#pragma once

#include <utility>

#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

using Bytes = I32::register_type;
// Sums have the type of their numbers: with that of the intrinsics g++ 12 copies every one before
// or after each instruction.
using Sums16 [[gnu::vector_size(sizeof(Bytes))]] = std::int16_t;
using Sums32 [[gnu::vector_size(sizeof(Bytes))]] = std::int32_t;

// Calls body<i>() for 0 <= i < kCount. The indices are constants from the start: with loops, which
// are unrolled late, g++ 12 keeps arrays in memory beside the registers.
template <int kCount, typename Body>
[[gnu::always_inline]] inline void unrolled(const Body& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (body.template operator()<i>(), ...);
  }
  (std::make_integer_sequence<int, kCount>{});
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
