// The scalar reference: the specification of every kernel but gemm. Plain loops, baseline instruction set.
// Vector kernels are compared with these functions bit for bit.
#include "ops/kernels/tables.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace tritgrad {
namespace {

constexpr int kPowersOf3[] = {1, 3, 9, 27, 81};

void random_u16_block(std::uint16_t* out, std::int64_t n, const RandomKey& key, std::uint64_t first) {
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = random_u16(key, first + static_cast<std::uint64_t>(i));
  }
}

void decode_trits(std::int8_t* trits, const std::uint8_t* packed, std::int64_t n) {
  const std::int64_t stripe = (n + 4) / 5;
  for (std::int64_t i = 0; i < n; ++i) {
    trits[i] = static_cast<std::int8_t>(packed[i % stripe] / kPowersOf3[i / stripe] % 3 - 1);
  }
}

void encode_trits(std::uint8_t* packed, const std::int8_t* trits, std::int64_t n) {
  const std::int64_t stripe = (n + 4) / 5;
  for (std::int64_t j = 0; j < stripe; ++j) {
    int byte = 0;
    for (std::int64_t digit = 0; digit < 5; ++digit) {
      const std::int64_t i = digit * stripe + j;
      byte += kPowersOf3[digit] * (i < n ? trits[i] + 1 : 1);
    }
    packed[j] = static_cast<std::uint8_t>(byte);
  }
}

void trits_to_float(float* out, const std::int8_t* trits, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(trits[i]);
}

void latent_to_float(float* out, const std::int8_t* codes, int threshold, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<float>((codes[i] > threshold) - (codes[i] < -threshold));
  }
}

void bf16_to_float(float* out, const std::uint16_t* in, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(in[i]) << 16);
  }
}

void float_to_bf16(std::uint16_t* out, const float* in, const std::uint16_t* noise, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(in[i]);
    const std::uint32_t to_nearest = 0x7FFFu + (bits >> 16 & 1u);
    std::uint32_t rounded = (bits + (noise == nullptr ? to_nearest : noise[i])) >> 16;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) rounded = bits >> 16 | 0x40u;  // NaN: stays, made quiet
    if (magnitude == 0x7F800000u) rounded = bits >> 16;
    out[i] = static_cast<std::uint16_t>(rounded);
  }
}

void descend(float* w, const float* direction, float lr, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) w[i] -= lr * direction[i];
}

void quantize_levels(std::int16_t* levels, const float* direction, float scale, int limit,
                     const std::uint16_t* noise, std::int64_t n) {
  const float high = static_cast<float>(limit);
  for (std::int64_t i = 0; i < n; ++i) {
    const float exact = -scale * direction[i];
    float level = 0.0f;
    if (noise == nullptr) {
      level = std::nearbyint(exact);
    } else {
      level = std::floor(exact + (static_cast<float>(noise[i]) + 0.5f) * 0x1p-16f);
    }
    level = level > -high ? level : -high;
    level = level < high ? level : high;
    levels[i] = exact == exact ? static_cast<std::int16_t>(level) : std::int16_t{0};
  }
}

FlipCounts accumulate_ternary(std::int8_t* trits, std::int8_t* accumulators,
                              const std::int16_t* levels, const FlipPolicy& policy, std::int64_t n) {
  FlipCounts counts;
  for (std::int64_t i = 0; i < n; ++i) {
    const TritState next = accumulate({trits[i], accumulators[i]}, levels[i], policy, counts);
    trits[i] = static_cast<std::int8_t>(next.trit);
    accumulators[i] = static_cast<std::int8_t>(next.accumulator);
  }
  return counts;
}

FlipCounts accumulate_latent(std::int8_t* codes, const std::int16_t* levels, int hysteresis,
                             std::int64_t n) {
  FlipPolicy policy;
  policy.hysteresis = hysteresis;
  FlipCounts counts;
  for (std::int64_t i = 0; i < n; ++i) {
    const TritState state = split_code(codes[i], policy.threshold);
    const TritState next = accumulate(state, levels[i], policy, counts);
    codes[i] = static_cast<std::int8_t>(policy.levels_per_trit() * next.trit + next.accumulator);
  }
  return counts;
}

void adamw(float* direction, float* m, float* v, const float* grad, const float* master,
           const AdamwConstants& c, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = grad[i];
    m[i] = c.beta1 * m[i] + c.one_minus_beta1 * g;
    v[i] = c.beta2 * v[i] + c.one_minus_beta2 * (g * g);
    const float denominator = std::sqrt(v[i] * c.inverse_bias2) + c.eps;
    direction[i] = m[i] * c.inverse_bias1 / denominator + c.weight_decay * master[i];
  }
}

double sum_of_squares(const float* x, std::int64_t n) {
  double lanes[16] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    const double value = static_cast<double>(x[i]);
    lanes[i % 16] += value * value;
  }
  double sum = 0.0;
  for (double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

const KernelTable& reference_kernels() {
  static constexpr KernelTable kTable = {
      .name = "reference",
      .gemm = baseline_gemm,
      .random_u16 = random_u16_block,
      .decode_trits = decode_trits,
      .encode_trits = encode_trits,
      .trits_to_float = trits_to_float,
      .latent_to_float = latent_to_float,
      .bf16_to_float = bf16_to_float,
      .float_to_bf16 = float_to_bf16,
      .descend = descend,
      .quantize_levels = quantize_levels,
      .accumulate_ternary = accumulate_ternary,
      .accumulate_latent = accumulate_latent,
      .adamw = adamw,
      .sum_of_squares = sum_of_squares,
  };
  return kTable;
}

}  // namespace tritgrad
