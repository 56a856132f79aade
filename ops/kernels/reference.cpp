// The specification of every kernel in plain scalar code, compiled for the baseline instruction
// set. Vector kernels hand it the elements that do not fill a vector, through its tables: it is a
// baseline object, and a call from a vector object shares no inline code with it.
#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/formats/format.h"
#include "engine/formats/shared_accumulator.h"

// Loops that have no other form are their own specification.
#define TRITGRAD_TARGET reference
#include "ops/kernels/codecs/companded_loops-inl.h"
#include "ops/kernels/codecs/lowbit_loops-inl.h"
#include "ops/kernels/codecs/split_loops-inl.h"
#include "ops/kernels/codecs/ternary_master_loops-inl.h"
#include "ops/kernels/layers/attention_scalar-inl.h"
#include "ops/kernels/layers/layer_loops-inl.h"
#include "ops/kernels/layers/level_loops-inl.h"
#include "ops/kernels/layers/norm_loops-inl.h"
#include "ops/kernels/layers/transformer_loops-inl.h"
#include "ops/kernels/products/integer_loops-inl.h"
#include "ops/kernels/targets.h"
#include "ops/kernels/updates/feedback_loops-inl.h"
#include "ops/kernels/updates/rule_loops-inl.h"

namespace tritgrad::reference {

void encode_trit_bytes(std::uint8_t* packed, const std::int8_t* trits, std::int64_t n,
                       std::int64_t begin, std::int64_t end) {
  const std::int64_t stripe = (n + 4) / 5;
  for (std::int64_t i = begin; i < end; ++i) {
    int digits = 0;
    for (std::int64_t k = 4; k >= 0; --k) {
      const std::int64_t element = k * stripe + i;
      digits = 3 * digits + (element < n ? trits[element] : 0) + 1;
    }
    packed[i] = static_cast<std::uint8_t>(digits);
  }
}

namespace {

using baseline::gemm;
using baseline::kPeakLoops;

void random_u16(std::uint16_t* out, std::int64_t n, const RandomKey& key, std::uint64_t first) {
  for (std::int64_t i = 0; i < n; i += 8) {
    const PhiloxBlock words = random_block(key, (first + static_cast<std::uint64_t>(i)) / 8);
    const std::int64_t count = std::min<std::int64_t>(8, n - i);
    for (std::int64_t j = 0; j < count; ++j) {
      const std::uint32_t word = words[static_cast<std::size_t>(j / 2)];
      out[i + j] = static_cast<std::uint16_t>(j % 2 == 0 ? word : word >> 16);
    }
  }
}

void decode_trits(std::int8_t* trits, std::int64_t ld, const std::uint8_t* packed,
                  std::int64_t ld_packed, std::int64_t rows, std::int64_t n) {
  const std::int64_t stripe = (n + 4) / 5;
  for (std::int64_t r = 0; r < rows; ++r, trits += ld, packed += ld_packed) {
    for (std::int64_t i = 0; i < stripe; ++i) {
      int digits = std::min<int>(packed[i], 242);
      for (std::int64_t element = i; element < n; element += stripe) {
        trits[element] = static_cast<std::int8_t>(digits % 3 - 1);
        digits /= 3;
      }
    }
  }
}

void dot_packed_trits(std::int32_t* sums, const std::uint8_t* packed, std::int64_t row_bytes,
                      std::int64_t rows, const std::int8_t* x, std::int64_t n) {
  for (std::int64_t row = 0; row < rows; ++row, packed += row_bytes) {
    sums[row] = 0;
    for (std::int64_t begin = 0; begin < n; begin += kBlock) {
      const std::int64_t count = std::min(kBlock, n - begin);
      std::int8_t trits[kBlock];
      decode_trits(trits, 0, packed + begin / 5, 0, 1, count);
      for (std::int64_t i = 0; i < count; ++i) sums[row] += (trits[i] + 1) * x[begin + i];
    }
  }
}

void encode_trits(std::uint8_t* packed, const std::int8_t* trits, std::int64_t n) {
  encode_trit_bytes(packed, trits, n, 0, (n + 4) / 5);
}

void trits_to_float(float* out, const std::int8_t* trits, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = trits[i];
}

void pack_trits_down(std::uint8_t* panels, std::int64_t ld_panels, const std::uint8_t* packed,
                     std::int64_t ld_packed, std::int64_t rows, std::int64_t first,
                     std::int64_t last) {
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int8_t trits[kBlock];
    decode_trits(trits, 0, packed + row * ld_packed, 0, 1, kBlock);
    for (std::int64_t p = first; p < last; ++p) {
      std::uint8_t* group = panels + (p - first) * ld_panels + row / 4 * 4 * kPanelColumns;
      for (std::int64_t c = 0; c < kPanelColumns; ++c) {
        group[4 * c + row % 4] = static_cast<std::uint8_t>(trits[p * kPanelColumns + c] + 1);
      }
    }
  }
}

void pack_trits_across(std::uint8_t* panel, const std::uint8_t* packed, std::int64_t ld_packed) {
  for (std::int64_t c = 0; c < kPanelColumns; ++c) {
    std::int8_t trits[kBlock];
    decode_trits(trits, 0, packed + c * ld_packed, 0, 1, kBlock);
    for (std::int64_t i = 0; i < kBlock; ++i) {
      panel[(i / 4 * kPanelColumns + c) * 4 + i % 4] = static_cast<std::uint8_t>(trits[i] + 1);
    }
  }
}

void latent_to_trits(std::int8_t* trits, const std::int8_t* codes, int threshold, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    trits[i] = static_cast<std::int8_t>(split_code(codes[i], threshold).trit);
  }
}

void latent_to_float(float* out, const std::int8_t* codes, int threshold, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<float>((codes[i] > threshold) - (codes[i] < -threshold));
  }
}

void pack_latents_down(std::uint8_t* panels, std::int64_t ld_panels, const std::int8_t* codes,
                       std::int64_t ld, std::int64_t rows, std::int64_t columns, int threshold) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < columns; ++c) {
      std::uint8_t* group = panels + c / kPanelColumns * ld_panels + row / 4 * 4 * kPanelColumns;
      std::int8_t trit;
      latent_to_trits(&trit, codes + row * ld + c, threshold, 1);
      group[4 * (c % kPanelColumns) + row % 4] = static_cast<std::uint8_t>(trit + 1);
    }
  }
}

void pack_latents_across(std::uint8_t* panel, const std::int8_t* codes, std::int64_t ld,
                         std::int64_t depth, int threshold) {
  for (std::int64_t c = 0; c < kPanelColumns; ++c) {
    for (std::int64_t i = 0; i < depth; ++i) {
      std::int8_t trit;
      latent_to_trits(&trit, codes + c * ld + i, threshold, 1);
      panel[(i / 4 * kPanelColumns + c) * 4 + i % 4] = static_cast<std::uint8_t>(trit + 1);
    }
  }
}

void bf16_to_float(float* out, const std::uint16_t* in, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = std::bit_cast<float>(std::uint32_t{in[i]} << 16);
}

void float_to_bf16(std::uint16_t* out, const float* in, const std::uint16_t* noise,
                   std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(in[i]);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) {
      out[i] = static_cast<std::uint16_t>(bits >> 16 | 0x40u);
      continue;
    }
    // Half of the last kept place, less one when that place is even: ties go to even.
    const std::uint32_t nearest = 0x7FFFu + (bits >> 16 & 1u);
    const std::uint32_t added = noise == nullptr ? nearest : noise[i];
    out[i] = static_cast<std::uint16_t>((bits + added) >> 16);
  }
}

void quantize_columns(std::int8_t* codes, std::int64_t ld, const float* x, std::int64_t ld_x,
                      const float* factors, const float* inverse, std::int64_t rows,
                      std::int64_t columns) {
  for (std::int64_t c = 0; c < columns; ++c) {
    std::int8_t* to = codes + c * ld;
    std::int64_t r = 0;
    for (; r < rows; ++r) {
      const float level = x[r * ld_x + c] * factors[r] * inverse[c];
      to[r] = static_cast<std::int8_t>(std::nearbyint(std::fmax(std::fmin(level, 127), -127)));
    }
    for (; r % 4 != 0; ++r) to[r] = 0;
  }
}

void multiply_panel(std::int32_t* c, std::int64_t ldc, const std::int8_t* a, std::int64_t lda,
                    std::int64_t rows, std::int64_t columns, const std::uint8_t* panel,
                    const PanelDepth& depth, PanelRange, bool add, const PrefetchList&) {
  for (std::int64_t r = 0; r < rows; ++r) {
    if (!add) std::fill_n(c + r * ldc, columns, 0);
    for (std::int64_t at = 0; at < depth.pieces * depth.groups; ++at) {
      const std::int64_t piece = at / depth.groups, g = at % depth.groups;
      const std::int8_t* x = a + piece * depth.a_stride + r * lda + 4 * g;
      for (std::int64_t i = 0; i < columns; ++i) {
        const std::uint8_t* w = panel + piece * depth.panel_stride + 4 * (g * kPanelColumns + i);
        c[r * ldc + i] += x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + x[3] * w[3];
      }
    }
  }
}

void descend(float* w, const float* direction, float lr, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) w[i] -= lr * direction[i];
}

void quantize_levels(std::int16_t* levels, const Direction& direction,
                     const LevelRounding& rounding, std::int64_t n) {
  const auto bound = static_cast<float>(rounding.limit);
  const float negative_scale = -rounding.scale * direction.factor;
  for (std::int64_t i = 0; i < n; ++i) {
    float number = direction.floats != nullptr
                       ? direction.floats[i]
                       : static_cast<float>(direction.sums[i] - direction.correction);
    if (direction.signs) number = finite_sign(number);
    const float exact = negative_scale * number;
    float level = std::nearbyint(exact);
    if (rounding.noise != nullptr) {
      const std::uint32_t noise = rounding.noise[i] + rounding.offset;
      level = std::floor(exact + static_cast<float>(noise) * 0x1p-32f);
    }
    levels[i] = std::isnan(level) ? std::int16_t{0}
                                  : static_cast<std::int16_t>(std::clamp(level, -bound, bound));
  }
}

// term(i) for elements 0 to n - 1, added as kSumLanes says.
template <typename Term>
double sum_in_lanes(std::int64_t n, const Term& term) {
  double lanes[kSumLanes] = {};
  for (std::int64_t i = 0; i < n; ++i) lanes[i % kSumLanes] += double{term(i)};
  for (std::int64_t half = kSumLanes / 2; half > 0; half /= 2) {
    for (std::int64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

double sum(const float* x, std::int64_t n) {
  return sum_in_lanes(n, [x](std::int64_t i) { return x[i]; });
}

double sum_of_magnitudes(const float* x, std::int64_t n) {
  return sum_in_lanes(n, [x](std::int64_t i) { return std::abs(x[i]); });
}

double sum_of_squares(const float* x, std::int64_t n) {
  return sum_in_lanes(n, [x](std::int64_t i) { return double{x[i]} * double{x[i]}; });
}

std::int64_t sum_of_squared_sums(const std::int32_t* sums, std::int32_t correction,
                                 std::int64_t n) {
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t number = sums[i] - correction;
    total += number * number;
  }
  return total;
}

void measure(const DirectionRows& rows) {
  if (rows.squares == nullptr) return;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const Direction& direction = rows.directions[r];
    rows.squares[r] = direction.floats != nullptr
                          ? sum_of_squares(direction.floats, rows.n)
                          : static_cast<double>(
                                sum_of_squared_sums(direction.sums, direction.correction, rows.n));
  }
}

void descend_ternary(FlipCounts* counts, std::int8_t* trits, std::int64_t ld,
                     std::int8_t* accumulators, std::int64_t ld_a, const DirectionRows& rows,
                     const FlipPolicy& policy) {
  measure(rows);
  for (std::int64_t r = 0; r < rows.count; ++r) {
    counts[r] = {};
    for (std::int64_t i = 0; i < rows.n; ++i) {
      std::int16_t levels;
      quantize_levels(&levels, rows.directions[r].from(i), rows.roundings[r].from(i), 1);
      std::int8_t& trit = trits[r * ld + i];
      std::int8_t& accumulator = accumulators[r * ld_a + i];
      const TritState next = accumulate({trit, accumulator}, levels, policy, counts[r]);
      trit = static_cast<std::int8_t>(next.trit);
      accumulator = static_cast<std::int8_t>(next.accumulator);
    }
  }
}

void descend_shared(FlipCounts* counts, std::int8_t* trits, std::int64_t ld, std::int8_t* shared,
                    std::int64_t ld_shared, const DirectionRows& rows, int sharing, int turn) {
  constexpr int kMostSharing = 16;
  measure(rows);
  for (std::int64_t r = 0; r < rows.count; ++r) {
    counts[r] = {};
    for (std::int64_t first = 0; first < rows.n; first += sharing) {
      const auto members = static_cast<int>(std::min<std::int64_t>(sharing, rows.n - first));
      std::int16_t levels[kMostSharing];
      quantize_levels(levels, rows.directions[r].from(first), rows.roundings[r].from(first),
                      members);
      std::int8_t& byte = shared[r * ld_shared + first / sharing];
      byte = update_shared(byte, trits + r * ld + first, levels, members, sharing, turn, counts[r]);
    }
  }
}

void adamw(float* direction, float* m, float* v, const float* grad, const float* master,
           const AdamwConstants& constants, std::int64_t n) {
  const AdamwConstants& c = constants;
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = grad[i];
    m[i] = c.beta1 * m[i] + c.one_minus_beta1 * g;
    v[i] = c.beta2 * v[i] + (c.one_minus_beta2 * g) * g;
    const float root = std::sqrt(v[i] * c.inverse_bias2);
    direction[i] = m[i] * c.inverse_bias1 / (root + c.eps) + c.weight_decay * master[i];
  }
}

FlipCounts descend_latent(std::int8_t* codes, std::int64_t ld, const DirectionRows& rows,
                          int threshold, int hysteresis) {
  const FlipPolicy policy{.threshold = threshold,
                          .on_flip = OnFlip::kCarry,
                          .transition = Transition::kStepOneTrit,
                          .hysteresis = hysteresis};
  measure(rows);
  FlipCounts counts;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    for (std::int64_t i = 0; i < rows.n; ++i) {
      std::int16_t levels;
      quantize_levels(&levels, rows.directions[r].from(i), rows.roundings[r].from(i), 1);
      std::int8_t& code = codes[r * ld + i];
      const TritState next = accumulate(split_code(code, policy.threshold), levels, policy, counts);
      code = static_cast<std::int8_t>(policy.levels_per_trit() * next.trit + next.accumulator);
    }
  }
  return counts;
}

std::int64_t carry_trits(std::int8_t* trits, float* momentum, const float* direction,
                         const float* gain, const CarryConstants& constants,
                         const std::uint16_t* noise, std::int64_t n) {
  std::int64_t changed = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float exact = static_cast<float>(trits[i]) - constants.lr * direction[i];
    const float wanted = std::isnan(exact) ? 0.0f : std::clamp(exact, -1.5f, 1.5f);
    float level = std::nearbyint(wanted);
    if (noise != nullptr) {
      level = std::floor(wanted + (static_cast<float>(noise[i]) + 0.5f) * 0x1p-16f);
    }
    const float stored = std::clamp(level, -1.0f, 1.0f);
    const float error = constants.alpha * (wanted - stored);
    momentum[i] = constants.rescale * (momentum[i] + (gain == nullptr ? error : error / gain[i]));
    changed += stored != static_cast<float>(trits[i]);
    trits[i] = static_cast<std::int8_t>(stored);
  }
  return changed;
}

// A block part by part: direct(direction, m, v, grad, weight, gain) is the rule.
template <typename Direct>
std::int64_t carry_block(const CarriedTrits& at, const CarryConstants& carry, bool gain_is_one,
                         float* v, std::int64_t n, const Direct& direct) {
  std::int8_t trits[kBlock] = {};
  float weight[kBlock], m[kBlock], direction[kBlock], gain[kBlock];
  std::uint16_t noise[kBlock];
  const auto drawn = [&](const RandomKey* key) -> const std::uint16_t* {
    if (key == nullptr) return nullptr;
    random_u16(noise, n, *key, at.first_noise);
    return noise;
  };
  decode_trits(trits, 0, at.trits, 0, 1, n);
  trits_to_float(weight, trits, n);
  if (at.m == nullptr) {
    decode_groups(m, at.m_codes, at.m_scales, 127, n);
  } else {
    std::copy_n(at.m, n, m);
  }
  direct(direction, m, v, at.grad, weight, gain);
  const std::int64_t changed =
      carry_trits(trits, m, direction, gain_is_one ? nullptr : gain, carry, drawn(at.trit_key), n);
  encode_trits(at.trits, trits, n);
  if (at.m == nullptr) {
    encode_groups(at.m_codes, at.m_scales, m, 127, drawn(at.m_key), n);
  } else {
    std::copy_n(m, n, at.m);
  }
  return changed;
}

std::int64_t carry_normalized(const CarriedTrits& at, const NormalizedConstants& c, float v,
                              const CarryConstants& carry, std::int64_t n) {
  float squares[kBlock], fresh[kBlock];
  std::fill_n(squares, n, v);
  const std::int64_t changed = carry_block(
      at, carry, true, squares, n,
      [&](float* direction, float* m, float* its_v, const float* grad, const float*, float*) {
        normalized(fresh, its_v, grad, c.beta, c.one_minus_beta, c.inverse_bias, n);
        if (c.limit > 0.0f) limit(fresh, c.limit, n);
        sgd(direction, m, fresh, c.momentum, c.fresh, false, n);
      });
  *at.v_sum = sum(squares, n);
  return changed;
}

std::int64_t carry_sgd(const CarriedTrits& at, const SgdConstants& c, const CarryConstants& carry,
                       std::int64_t n) {
  return carry_block(
      at, carry, !c.nesterov, nullptr, n,
      [&](float* direction, float* m, float*, const float* grad, const float* weight, float* gain) {
        float decayed[kBlock];
        std::copy_n(grad, n, decayed);
        if (c.coupled) add_scaled(decayed, weight, c.weight_decay, n);
        sgd(direction, m, decayed, c.momentum, c.fresh, c.nesterov, n);
        if (!c.coupled) add_scaled(direction, weight, c.weight_decay, n);
        std::fill_n(gain, n, c.momentum);
      });
}

std::int64_t carry_adamw(const CarriedTrits& at, const AdamwConstants& c,
                         const CarryConstants& carry, std::int64_t n) {
  return carry_block(at, carry, false, at.v, n,
                     [&](float* direction, float* m, float* v, const float* grad,
                         const float* weight, float* gain) {
                       adamw(direction, m, v, grad, weight, c, n);
                       adam_gain(gain, v, c.inverse_bias1, c.inverse_bias2, c.eps, n);
                     });
}

void select_largest(std::uint16_t* index, const float* x, std::int64_t k, std::int64_t n) {
  std::uint16_t order[kMostFeedback] = {};
  for (std::int64_t i = 0; i < n; ++i) order[i] = static_cast<std::uint16_t>(i);
  std::nth_element(order, order + k - 1, order + n, [x](std::uint16_t a, std::uint16_t b) {
    const float of_a = std::abs(x[a]), of_b = std::abs(x[b]);
    return of_a > of_b || (of_a == of_b && a < b);
  });
  std::sort(order, order + k);
  std::copy_n(order, k, index);
}

void add_feedback(float* out, const float* grad, const Feedback& feedback, std::int64_t n) {
  std::uint8_t levels[kMostFeedback];
  unpack_feedback(levels, feedback.codes, feedback.bits, n);
  add_levels(out, grad, levels, feedback, n);
}

void store_feedback(const Feedback& feedback, const float* x, const std::uint16_t* noise,
                    std::int64_t n) {
  std::uint8_t levels[kMostFeedback] = {};
  choose_levels(levels, x, feedback, noise, n);
  pack_feedback(feedback.codes, levels, feedback.bits, n);
}

// The reference has no passes that do several kernels' work at once.
bool flash_adamw(const FlashElements&, const AdamwConstants&, float, std::int64_t) { return false; }
bool flash_lion(const FlashElements&, const LionConstants&, float, float, std::int64_t) {
  return false;
}
bool flash_sgd(const FlashElements&, const SgdConstants&, float, std::int64_t) { return false; }

double sum_of_squares_around(const float* x, double mean, std::int64_t n) {
  return sum_in_lanes(n, [=](std::int64_t i) {
    const double centered = double{x[i]} - mean;
    return centered * centered;
  });
}

RowNormSums row_norm_sums(const float* dy, const float* x, const RowNorm& norm, std::int64_t n) {
  const auto dz = [&](std::int64_t i) { return norm.gain[i] * dy[i]; };
  const auto z = [&](std::int64_t i) { return (x[i] - norm.mean) * norm.inverse_std; };
  return {sum_in_lanes(n, dz),
          sum_in_lanes(n, [&](std::int64_t i) { return double{dz(i)} * double{z(i)}; })};
}

}  // namespace

// Loops are the widest form that the reference has.
namespace wide = reference;

}  // namespace tritgrad::reference

#include "ops/kernels/tables-inl.h"
