// The specification of every kernel in plain scalar code, compiled for the baseline instruction
// set; of trits in reference_trits.cpp.
#include "ops/kernels/reference.h"

#include <bit>
#include <cmath>

#include "engine/formats/format.h"
#include "engine/formats/shared_accumulator.h"
#include "ops/kernels/targets.h"

// Loops that have no other form are their own specification.
#define TRITGRAD_TARGET reference
#include "ops/kernels/codecs/companded_loops-inl.h"
#include "ops/kernels/codecs/lowbit_loops-inl.h"
#include "ops/kernels/codecs/split_loops-inl.h"
#include "ops/kernels/codecs/ternary_master_loops-inl.h"
#include "ops/kernels/layers/activation_loops-inl.h"
#include "ops/kernels/layers/batch_norm_loops-inl.h"
#include "ops/kernels/layers/layer_loops-inl.h"
#include "ops/kernels/layers/row_norm_loops-inl.h"
#include "ops/kernels/products/integer_loops-inl.h"
#include "ops/kernels/updates/microadam_loops-inl.h"
#include "ops/kernels/updates/rule_loops-inl.h"

namespace tritgrad {
namespace reference {

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
                    std::int64_t groups, PanelRange, bool add, const MemoryAhead&) {
  for (std::int64_t r = 0; r < rows; ++r) {
    if (!add) std::fill_n(c + r * ldc, columns, 0);
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::int8_t* x = a + r * lda + 4 * g;
      for (std::int64_t i = 0; i < columns; ++i) {
        const std::uint8_t* w = panel + 4 * (g * kPanelColumns + i);
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

namespace {

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

}  // namespace

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

namespace {

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

// Of passes that do several kernels' work at once.
template <typename... Arguments>
bool has_no_pass(Arguments...) {
  return false;
}

}  // namespace
}  // namespace reference

const KernelTable kReferenceKernels = {
    .name = "reference",
    .gemm = baseline::gemm,
    .quantize_int8 = reference::quantize_int8,
    .max_abs_product = reference::max_abs_product,
    .quantize_columns = reference::quantize_columns,
    .sum_int8 = reference::sum_int8,
    .dot_int8 = reference::dot_int8,
    .dot_packed_trits = reference::dot_packed_trits,
    .any_negative = reference::any_negative,
    .raise_max_abs = reference::raise_max_abs,
    .pack_down = reference::pack_down,
    .pack_across = reference::pack_across,
    .pack_trits_down = reference::pack_trits_down,
    .pack_trits_across = reference::pack_trits_across,
    .pack_latents_down = reference::pack_latents_down,
    .pack_latents_across = reference::pack_latents_across,
    .multiply_panel = reference::multiply_panel,
    .rescale_sums = reference::rescale_sums,
    .rescale_sums_by = reference::rescale_sums_by,
    .random_u16 = reference::random_u16,
    .decode_trits = reference::decode_trits,
    .encode_trits = reference::encode_trits,
    .trits_to_float = reference::trits_to_float,
    .latent_to_trits = reference::latent_to_trits,
    .latent_to_float = reference::latent_to_float,
    .bf16_to_float = reference::bf16_to_float,
    .float_to_bf16 = reference::float_to_bf16,
    .encode_split8 = reference::encode_split8,
    .decode_split8 = reference::decode_split8,
    .encode_split16 = reference::encode_split16,
    .decode_split16 = reference::decode_split16,
    .encode_companded = reference::encode_companded,
    .decode_companded = reference::decode_companded,
    .encode_root = reference::encode_root,
    .decode_root = reference::decode_root,
    .pack_codes = reference::pack_codes,
    .unpack_codes = reference::unpack_codes,
    .encode_groups = reference::encode_groups,
    .decode_groups = reference::decode_groups,
    .encode_fp8 = reference::encode_fp8,
    .decode_fp8 = reference::decode_fp8,
    .decode_ternary_master = reference::decode_ternary_master,
    .descend = reference::descend,
    .descend_ternary_master = reference::descend_ternary_master,
    .quantize_levels = reference::quantize_levels,
    .descend_ternary = reference::descend_ternary,
    .descend_shared = reference::descend_shared,
    .descend_latent = reference::descend_latent,
    .adamw = reference::adamw,
    .add_scaled = reference::add_scaled,
    .sgd = reference::sgd,
    .sign = reference::sign,
    .lion = reference::lion,
    .normalized = reference::normalized,
    .divide_by_roots = reference::divide_by_roots,
    .adam_gain = reference::adam_gain,
    .carry_error = reference::carry_error,
    .carry_trits = reference::carry_trits,
    .limit = reference::limit,
    .count_at_least = reference::count_at_least,
    .find_at_least = reference::find_at_least,
    .find_range = reference::find_range,
    .quantize_feedback = reference::quantize_feedback,
    .add_feedback = reference::add_feedback,
    .flash_adamw = reference::has_no_pass,
    .flash_lion = reference::has_no_pass,
    .flash_sgd = reference::has_no_pass,
    .relu = reference::relu,
    .rectify_gradient = reference::rectify_gradient,
    .squared_relu = reference::squared_relu,
    .squared_relu_gradient = reference::squared_relu_gradient,
    .tanh = reference::tanh,
    .tanh_gradient = reference::tanh_gradient,
    .add_to_sums = reference::add_to_sums,
    .add_squares_around = reference::add_squares_around,
    .add_products = reference::add_products,
    .batch_norm = reference::batch_norm,
    .add_batch_norm_sums = reference::add_batch_norm_sums,
    .batch_norm_gradient = reference::batch_norm_gradient,
    .row_norm = reference::row_norm,
    .add_row_norm_gradients = reference::add_row_norm_gradients,
    .row_norm_gradient = reference::row_norm_gradient,
    .bytes_to_float = reference::bytes_to_float,
    .square_roots = reference::square_roots,
    .standardize_features = reference::standardize_features,
    .max_pool = reference::max_pool,
    .max_pool_gradient = reference::max_pool_gradient,
    .all_finite = reference::all_finite,
    .all_finite_bf16 = reference::all_finite_bf16,
    .max_abs = reference::max_abs,
    .sum = reference::sum,
    .sum_of_magnitudes = reference::sum_of_magnitudes,
    .sum_of_squares = reference::sum_of_squares,
    .sum_of_squares_around = reference::sum_of_squares_around,
    .row_norm_sums = reference::row_norm_sums,
    .sum_of_squared_sums = reference::sum_of_squared_sums,
};

}  // namespace tritgrad
