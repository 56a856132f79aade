// Integers in groups with a scale each, whole groups in vectors; the last one by the loops of
// lowbit_loops-inl.h, which are the specification.
#pragma once

#include "engine/kernels/kernel_table.h"
#include "ops/kernels/codecs/lowbit_loops-inl.h"
#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET::wide {
namespace {

constexpr std::int64_t kStep = kLanes<F32>, kScaleVectors = kCodesPerScale / kStep;

// largest_magnitude() of a group.
float largest_of_group(const float* x) {
  I32 largest(0);
  for (std::int64_t part = 0; part < kScaleVectors; ++part) {
    const I32 bits = bits_as<I32>(read<F32>(x + part * kStep)) & I32(kMagnitudeBits);
    const I32 number = select(bits > I32(kInfinityBits), I32(0), bits);
    largest = max(largest, min(number, I32(kLargestBits)));
  }
  std::int32_t lanes[kStep];
  write(lanes, largest);
  std::int32_t most = 0;
  for (const std::int32_t lane : lanes) most = lane > most ? lane : most;
  return std::bit_cast<float>(most);
}

void write_group(std::int8_t* codes, const I32 (&levels)[kScaleVectors]) {
  if constexpr (kScaleVectors == 2) {
    write_narrow(codes, narrow(levels[0], levels[1]));
  } else {
    write(codes, narrow(levels[0], levels[1], levels[2], levels[3]));
  }
}

// A group whose scale is not 0.
void encode_whole_group(std::int8_t* codes, const float* x, float scale, float top,
                        const std::uint16_t* noise) {
  I32 levels[kScaleVectors];
  for (std::int64_t part = 0; part < kScaleVectors; ++part) {
    const F32 exact = read<F32>(x + part * kStep) / F32(scale);
    const F32 level = clamp(select(exact == exact, exact, F32(0.0f)), F32(-top), F32(top));
    levels[part] = round_small(level, noise == nullptr ? nullptr : noise + part * kStep);
  }
  write_group(codes, levels);
}

void encode_groups(std::int8_t* codes, std::uint16_t* scales, const float* x, int max_code,
                   const std::uint16_t* noise, std::int64_t n) {
  const auto top = static_cast<float>(max_code);
  const std::int64_t groups = n / kCodesPerScale;
  // All scales first: the way from a group's numbers to its scale is long, but can be gone for many
  // at a time.
  for (std::int64_t g = 0; g < groups; ++g) {
    scales[g] = shared_scale(largest_of_group(x + g * kCodesPerScale), top, noise != nullptr);
  }
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t i = g * kCodesPerScale;
    if (scales[g] == 0) {
      write_group(codes + i, {});
    } else {
      encode_whole_group(codes + i, x + i, float_of_bf16(scales[g]), top,
                         noise == nullptr ? nullptr : noise + i);
    }
  }
  const std::int64_t done = groups * kCodesPerScale;
  TRITGRAD_TARGET::encode_groups(codes + done, scales + groups, x + done, max_code,
                                 noise == nullptr ? nullptr : noise + done, n - done);
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET::wide
