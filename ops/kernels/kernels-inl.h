// The vector kernels, written once and compiled for each instruction set (target_*.cpp).
//
// Every function does what its namesake in reference.cpp does, to the bit: the same operations in the same
// order for each element, no fused multiply-add, tails by the reference itself. Loops over integers are
// free of branches in 16-bit arithmetic, which compilers turn into full vectors.
#pragma once

#include <algorithm>
#include <array>
#include <bit>

#include "ops/kernels/gemm-inl.h"
#include "ops/kernels/simd-inl.h"
#include "ops/kernels/tables.h"

namespace tritgrad::TRITGRAD_TARGET {

// ---- random bits -----------------------------------------------------------------------------------

// Philox4x32-10 on kLanes neighbouring blocks at a time: random.h, philox4x32, lane by lane.
inline void random_u16(std::uint16_t* out, std::int64_t n, const RandomKey& key, std::uint64_t first) {
  constexpr int kLanes = 16;
  constexpr std::int64_t kWave = 8 * kLanes;
  std::int64_t done = 0;
  for (; done + kWave <= n; done += kWave) {
    const std::uint64_t block = (first + static_cast<std::uint64_t>(done)) / 8;
    std::uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
    for (int l = 0; l < kLanes; ++l) {
      const std::uint64_t counter = block + static_cast<std::uint64_t>(l);
      c0[l] = static_cast<std::uint32_t>(counter);
      c1[l] = static_cast<std::uint32_t>(counter >> 32);
      c2[l] = key.stream;
      c3[l] = key.step;
    }
    auto k0 = static_cast<std::uint32_t>(key.seed);
    auto k1 = static_cast<std::uint32_t>(key.seed >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int l = 0; l < kLanes; ++l) {
        const std::uint64_t p0 = 0xD2511F53ull * c0[l];
        const std::uint64_t p1 = 0xCD9E8D57ull * c2[l];
        c0[l] = static_cast<std::uint32_t>(p1 >> 32) ^ c1[l] ^ k0;
        c1[l] = static_cast<std::uint32_t>(p1);
        c2[l] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[l] ^ k1;
        c3[l] = static_cast<std::uint32_t>(p0);
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    for (int l = 0; l < kLanes; ++l) {
      const std::uint32_t words[4] = {c0[l], c1[l], c2[l], c3[l]};
      for (int w = 0; w < 4; ++w) {
        out[done + 8 * l + 2 * w] = static_cast<std::uint16_t>(words[w]);
        out[done + 8 * l + 2 * w + 1] = static_cast<std::uint16_t>(words[w] >> 16);
      }
    }
  }
  if (done < n) {
    reference_kernels().random_u16(out + done, n - done, key, first + static_cast<std::uint64_t>(done));
  }
}

// ---- trits -----------------------------------------------------------------------------------------

// v / 3^k by multiplication, exact for v <= 242 (all 243 bytes are tested).
inline void decode_stripe(std::int8_t* trits, const std::uint8_t* packed, std::int64_t n,
                          std::uint16_t multiplier, int shift) {
  for (std::int64_t j = 0; j < n; ++j) {
    const auto q = static_cast<std::uint16_t>(static_cast<std::uint16_t>(packed[j] * multiplier) >> shift);
    const auto third = static_cast<std::uint16_t>(static_cast<std::uint16_t>(q * 171) >> 9);
    trits[j] = static_cast<std::int8_t>(q - 3 * third - 1);
  }
}

inline void decode_trits(std::int8_t* trits, const std::uint8_t* packed, std::int64_t n) {
  constexpr struct {
    std::uint16_t multiplier;
    int shift;
  } kDivisions[5] = {{1, 0}, {171, 9}, {57, 9}, {19, 9}, {203, 14}};
  const std::int64_t stripe = (n + 4) / 5;
  for (std::int64_t digit = 0; digit < 5; ++digit) {
    const std::int64_t begin = digit * stripe;
    const std::int64_t count = std::min(stripe, n - begin);
    decode_stripe(trits + begin, packed, count, kDivisions[digit].multiplier, kDivisions[digit].shift);
  }
}

inline void encode_trits(std::uint8_t* packed, const std::int8_t* trits, std::int64_t n) {
  if (n % 5 != 0) {
    reference_kernels().encode_trits(packed, trits, n);
    return;
  }
  const std::int64_t stripe = n / 5;
  for (std::int64_t j = 0; j < stripe; ++j) {
    const int sum = trits[j] + 3 * trits[j + stripe] + 9 * trits[j + 2 * stripe] +
                    27 * trits[j + 3 * stripe] + 81 * trits[j + 4 * stripe];
    packed[j] = static_cast<std::uint8_t>(sum + 121);  // 121 = 1 + 3 + 9 + 27 + 81
  }
}

inline void trits_to_float(float* out, const std::int8_t* trits, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(trits[i]);
}

inline void latent_to_float(float* out, const std::int8_t* codes, int threshold, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const int code = codes[i];
    out[i] = static_cast<float>((code > threshold) - (code < -threshold));
  }
}

// ---- bf16 ------------------------------------------------------------------------------------------

inline void bf16_to_float(float* out, const std::uint16_t* in, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(in[i]) << 16);
  }
}

template <bool kStochastic>
inline void float_to_bf16_as(std::uint16_t* out, const float* in, const std::uint16_t* noise,
                             std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(in[i]);
    const std::uint32_t added = kStochastic ? noise[i] : 0x7FFFu + (bits >> 16 & 1u);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
    const std::uint32_t special = bits >> 16 | (magnitude > 0x7F800000u ? 0x40u : 0u);
    const std::uint32_t rounded = magnitude >= 0x7F800000u ? special : (bits + added) >> 16;
    out[i] = static_cast<std::uint16_t>(rounded);
  }
}

inline void float_to_bf16(std::uint16_t* out, const float* in, const std::uint16_t* noise,
                          std::int64_t n) {
  noise == nullptr ? float_to_bf16_as<false>(out, in, noise, n)
                   : float_to_bf16_as<true>(out, in, noise, n);
}

// ---- updates ---------------------------------------------------------------------------------------

inline void descend(float* w, const float* direction, float lr, std::int64_t n) {
  const Floats rate(lr);
  for_vectors(
      n, [&](std::int64_t i) { store(w + i, load(w + i) - rate * load(direction + i)); },
      [&](std::int64_t i) { w[i] -= lr * direction[i]; });
}

// Whole vectors of one chunk; `noise` are the numbers as floats, or null.
inline void quantize_chunk(std::int16_t* levels, const float* direction, float scale, float high,
                           const float* noise) {
  std::array<float, 64> rounded;
  const Floats negative_scale(-scale), top(high), bottom(-high), zero(0.0f), half(0.5f), unit(0x1p-16f);
  for (std::int64_t i = 0; i < 64; i += kFloats) {
    const Floats exact = negative_scale * load(direction + i);
    Floats level = noise == nullptr ? xsimd::nearbyint(exact)
                                    : xsimd::floor(exact + (load(noise + i) + half) * unit);
    level = xsimd::select(level > bottom, level, bottom);
    level = xsimd::select(level < top, level, top);
    store(rounded.data() + i, xsimd::select(exact == exact, level, zero));
  }
  for (std::size_t i = 0; i < 64; ++i) levels[i] = static_cast<std::int16_t>(static_cast<int>(rounded[i]));
}

inline void quantize_levels(std::int16_t* levels, const float* direction, float scale, int limit,
                            const std::uint16_t* noise, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    std::array<float, 64> numbers;
    for (std::size_t j = 0; noise != nullptr && j < 64; ++j) {
      numbers[j] = static_cast<float>(noise[i + static_cast<std::int64_t>(j)]);
    }
    quantize_chunk(levels + i, direction + i, scale, static_cast<float>(limit),
                   noise == nullptr ? nullptr : numbers.data());
  }
  reference_kernels().quantize_levels(levels + i, direction + i, scale, limit,
                                      noise == nullptr ? nullptr : noise + i, n - i);
}

// One fixed-point step in 16 bits: flips.h, accumulate() with carry, one trit at a time.
struct CarryStep {
  std::int16_t k, threshold, limit, hysteresis;

  struct Result {
    std::int16_t trit, code, flip, rail;
  };
  Result operator()(std::int16_t trit, std::int16_t code, std::int16_t level) const {
    const auto wanted = static_cast<std::int16_t>(code + level);
    const std::int16_t low = static_cast<std::int16_t>(-limit);
    const std::int16_t next = std::min(std::max(wanted, low), limit);
    const auto moved = static_cast<std::int16_t>((next > threshold) - (next < -threshold));
    const auto change = static_cast<std::int16_t>(moved - trit);
    const auto center = static_cast<std::int16_t>(moved * k);
    auto pushed = static_cast<std::int16_t>(next + hysteresis * change);
    pushed = std::min(std::max(pushed, low), limit);
    const auto left = static_cast<std::int16_t>(center - threshold);
    const auto right = static_cast<std::int16_t>(center + threshold);
    pushed = std::min(std::max(pushed, left), right);
    const auto flip = static_cast<std::int16_t>(change != 0);
    const auto rail = static_cast<std::int16_t>((change == 0) & (wanted != next));
    return {moved, pushed, flip, rail};
  }
};

inline FlipCounts accumulate_latent(std::int8_t* codes, const std::int16_t* levels, int hysteresis,
                                    std::int64_t n) {
  const CarryStep step{85, 42, 127, static_cast<std::int16_t>(hysteresis)};
  FlipCounts counts;
  for (std::int64_t begin = 0; begin < n; begin += 4096) {  // 16-bit counters hold a chunk
    const std::int64_t end = std::min(n, begin + 4096);
    std::int16_t flips = 0;
    std::int16_t rails = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int16_t code = codes[i];
      const auto trit = static_cast<std::int16_t>((code > 42) - (code < -42));
      const CarryStep::Result result = step(trit, code, levels[i]);
      codes[i] = static_cast<std::int8_t>(result.code);
      flips = static_cast<std::int16_t>(flips + result.flip);
      rails = static_cast<std::int16_t>(rails + result.rail);
    }
    counts += {flips, rails};
  }
  return counts;
}

inline FlipCounts accumulate_ternary(std::int8_t* trits, std::int8_t* accumulators,
                                     const std::int16_t* levels, const FlipPolicy& policy,
                                     std::int64_t n) {
  if (policy.on_flip != OnFlip::kCarry || policy.transition != Transition::kStepOneTrit) {
    return reference_kernels().accumulate_ternary(trits, accumulators, levels, policy, n);
  }
  const auto k = static_cast<std::int16_t>(policy.levels_per_trit());
  const auto threshold = static_cast<std::int16_t>(policy.threshold);
  const CarryStep step{k, threshold, static_cast<std::int16_t>(k + threshold),
                       static_cast<std::int16_t>(policy.hysteresis)};
  FlipCounts counts;
  for (std::int64_t begin = 0; begin < n; begin += 4096) {
    const std::int64_t end = std::min(n, begin + 4096);
    std::int16_t flips = 0;
    std::int16_t rails = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int16_t trit = trits[i];
      const auto code = static_cast<std::int16_t>(trit * k + accumulators[i]);
      const CarryStep::Result result = step(trit, code, levels[i]);
      trits[i] = static_cast<std::int8_t>(result.trit);
      accumulators[i] = static_cast<std::int8_t>(result.code - result.trit * k);
      flips = static_cast<std::int16_t>(flips + result.flip);
      rails = static_cast<std::int16_t>(rails + result.rail);
    }
    counts += {flips, rails};
  }
  return counts;
}

// ---- rules and reductions --------------------------------------------------------------------------

inline void adamw(float* direction, float* m, float* v, const float* grad, const float* master,
                  const AdamwConstants& c, std::int64_t n) {
  const Floats beta1(c.beta1), beta2(c.beta2), rest1(c.one_minus_beta1), rest2(c.one_minus_beta2);
  const Floats bias1(c.inverse_bias1), bias2(c.inverse_bias2), eps(c.eps), decay(c.weight_decay);
  std::int64_t i = 0;
  for (; i + kFloats <= n; i += kFloats) {
    const Floats g = load(grad + i);
    const Floats new_m = beta1 * load(m + i) + rest1 * g;
    const Floats new_v = beta2 * load(v + i) + rest2 * (g * g);
    store(m + i, new_m);
    store(v + i, new_v);
    const Floats denominator = xsimd::sqrt(new_v * bias2) + eps;
    store(direction + i, new_m * bias1 / denominator + decay * load(master + i));
  }
  reference_kernels().adamw(direction + i, m + i, v + i, grad + i, master + i, c, n - i);
}

inline double sum_of_squares(const float* x, std::int64_t n) {
  std::array<double, 16> lanes{};
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (std::size_t lane = 0; lane < 16; ++lane) {
      const double value = static_cast<double>(x[i + static_cast<std::int64_t>(lane)]);
      lanes[lane] += value * value;
    }
  }
  for (std::size_t lane = 0; i < n; ++i, ++lane) {
    const double value = static_cast<double>(x[i]);
    lanes[lane] += value * value;
  }
  double sum = 0.0;
  for (double lane : lanes) sum += lane;
  return sum;
}

inline constexpr KernelTable make_table(const char* name) {
  return {.name = name,
          .gemm = gemm,
          .random_u16 = random_u16,
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
          .sum_of_squares = sum_of_squares};
}

}  // namespace tritgrad::TRITGRAD_TARGET
