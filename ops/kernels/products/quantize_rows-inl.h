// Floats as int8 codes, four vectors to one of bytes; and the sums of codes.
#pragma once

#include "ops/kernels/codecs/codec_verbs-inl.h"
#include "ops/kernels/products/integer_loops-inl.h"
#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace wide {
namespace {

// level(i): a vector of levels from i on. Returns where the rest begins.
template <typename Level>
inline std::int64_t write_codes(std::int8_t* codes, std::int64_t n, const Level& level) {
  constexpr std::int64_t kFloats = kLanes<F32>;
  std::int64_t i = 0;
  for (; i + 4 * kFloats <= n; i += 4 * kFloats) {
    const I8 bytes = narrow(code_of(level(i)), code_of(level(i + kFloats)),
                            code_of(level(i + 2 * kFloats)), code_of(level(i + 3 * kFloats)));
    write(codes + i, max(bytes, I8(std::int8_t{-127})));
  }
  return i;
}

void quantize_int8(std::int8_t* codes, const float* x, const float* factors, float inverse,
                   std::int64_t n) {
  const F32 scale(inverse);
  const std::int64_t i =
      factors == nullptr
          ? write_codes(codes, n, [=](std::int64_t at) { return read<F32>(x + at) * scale; })
          : write_codes(codes, n, [=](std::int64_t at) {
              return read<F32>(x + at) * read<F32>(factors + at) * scale;
            });
  TRITGRAD_TARGET::quantize_int8(codes + i, x + i, factors == nullptr ? nullptr : factors + i,
                                 inverse, n - i);
}

void sum_int8(std::int32_t* sums, const std::int8_t* x, std::int64_t ld, std::int64_t rows,
              std::int64_t n) {
  constexpr std::int64_t kBytes = kLanes<U8>;
  const std::int64_t whole = n / kBytes * kBytes;
  const U8 offset(std::uint8_t{128});  // makes codes unsigned
  for (std::int64_t r = 0; r < rows; ++r, x += ld) {
    U64 eights(std::uint64_t{0});
    for (std::int64_t i = 0; i < whole; i += kBytes) {
      eights = eights + sum_eights(read<U8>(reinterpret_cast<const std::uint8_t*>(x + i)) ^ offset);
    }
    sums[r] = static_cast<std::int32_t>(sum_lanes(eights) - 128 * whole);
    if (whole == n) continue;
    std::int32_t rest;
    TRITGRAD_TARGET::sum_int8(&rest, x + whole, 0, 1, n - whole);
    sums[r] += rest;
  }
}

}  // namespace
}  // namespace wide
}  // namespace tritgrad::TRITGRAD_TARGET
