// The tables of one target, made of the functions of that name that its -inl.h files or, for the
// reference, ops/kernels/reference.cpp define; to be included behind them. Where loops have a
// vector form beside them, that one stands in the namespace `wide`.
#pragma once

#include "ops/kernels/targets.h"

#define TRITGRAD_QUOTE(text) #text
#define TRITGRAD_NAME(target) TRITGRAD_QUOTE(target)

namespace tritgrad::TRITGRAD_TARGET {
namespace {

constexpr ProductKernels kProducts = {
    .gemm = gemm,
    .quantize_int8 = wide::quantize_int8,
    .quantize_rests = quantize_rests,
    .quantize_columns = quantize_columns,
    .largest_sum = largest_sum,
    .max_abs_product = max_abs_product,
    .raise_max_abs = raise_max_abs,
    .any_negative = any_negative,
    .sum_int8 = wide::sum_int8,
    .dot_int8 = dot_int8,
    .dot_packed_trits = dot_packed_trits,
    .pack_down = wide::pack_down,
    .pack_across = wide::pack_across,
    .pack_trits_down = pack_trits_down,
    .pack_trits_across = pack_trits_across,
    .pack_latents_down = pack_latents_down,
    .pack_latents_across = pack_latents_across,
    .multiply_panel = multiply_panel,
    .rescale_sums = rescale_sums,
    .rescale_sums_by = rescale_sums_by,
};

constexpr CodecKernels kCodecs = {
    .random_u16 = random_u16,
    .decode_trits = decode_trits,
    .encode_trits = encode_trits,
    .trits_to_float = trits_to_float,
    .latent_to_trits = latent_to_trits,
    .latent_to_float = latent_to_float,
    .decode_ternary_master = decode_ternary_master,
    .bf16_to_float = bf16_to_float,
    .float_to_bf16 = float_to_bf16,
    .encode_split8 = wide::encode_split8,
    .decode_split8 = wide::decode_split8,
    .encode_split16 = wide::encode_split16,
    .decode_split16 = wide::decode_split16,
    .encode_companded = wide::encode_companded,
    .decode_companded = wide::decode_companded,
    .encode_root = wide::encode_root,
    .decode_root = wide::decode_root,
    .pack_codes = wide::pack_codes,
    .unpack_codes = wide::unpack_codes,
    .encode_groups = wide::encode_groups,
    .decode_groups = wide::decode_groups,
    .encode_fp8 = wide::encode_fp8,
    .decode_fp8 = wide::decode_fp8,
};

constexpr UpdateKernels kUpdates = {
    .descend = descend,
    .descend_ternary_master = descend_ternary_master,
    .quantize_levels = quantize_levels,
    .descend_ternary = descend_ternary,
    .descend_shared = descend_shared,
    .descend_latent = descend_latent,
    .adamw = adamw,
    .sgd = sgd,
    .sign = sign,
    .lion = lion,
    .normalized = normalized,
    .divide_by_roots = divide_by_roots,
    .adam_gain = adam_gain,
    .carry_error = carry_error,
    .carry_trits = carry_trits,
    .carry_normalized = carry_normalized,
    .carry_sgd = carry_sgd,
    .carry_adamw = carry_adamw,
    .limit = limit,
    .select_largest = select_largest,
    .add_feedback = wide::add_feedback,
    .store_feedback = wide::store_feedback,
    .flash_adamw = wide::flash_adamw,
    .flash_lion = wide::flash_lion,
    .flash_sgd = wide::flash_sgd,
};

constexpr LayerKernels kLayers = {
    .relu = relu,
    .rectify_gradient = rectify_gradient,
    .squared_relu = squared_relu,
    .squared_relu_gradient = squared_relu_gradient,
    .tanh = tanh,
    .tanh_gradient = tanh_gradient,
    .rotate_pairs = rotate_pairs,
    .swiglu = swiglu,
    .swiglu_gradient = swiglu_gradient,
    .batch_norm = batch_norm,
    .add_batch_norm_sums = wide::add_batch_norm_sums,
    .batch_norm_gradient = batch_norm_gradient,
    .row_norm = row_norm,
    .row_norm_sums = row_norm_sums,
    .add_row_norm_gradients = add_row_norm_gradients,
    .row_norm_gradient = row_norm_gradient,
    .bytes_to_float = bytes_to_float,
    .square_roots = square_roots,
    .standardize_features = standardize_features,
    .narrow_sums = narrow_sums,
    .add_level_sums = wide::add_level_sums,
    .widen_level_range = wide::widen_level_range,
    .levels_to_float = levels_to_float,
    .pool_levels = pool_levels,
    .give_to_winners = give_to_winners,
    .max_pool = max_pool,
    .max_pool_gradient = max_pool_gradient,
};

constexpr AttentionKernels kAttention = {
    .attend_head = attend_head,
    .attend_head_gradient = attend_head_gradient,
    .attend_query = attend_query,
};

constexpr ReductionKernels kReductions = {
    .all_finite = all_finite,
    .all_finite_bf16 = all_finite_bf16,
    .max_abs = max_abs,
    .sum = sum,
    .sum_of_magnitudes = sum_of_magnitudes,
    .sum_of_squares = sum_of_squares,
    .sum_of_squares_around = sum_of_squares_around,
    .sum_of_squared_sums = sum_of_squared_sums,
    .add_to_sums = wide::add_to_sums,
    .add_squares_around = wide::add_squares_around,
    .add_products = wide::add_products,
    .add_scaled = add_scaled,
};

}  // namespace

const KernelTables kKernels = {TRITGRAD_NAME(TRITGRAD_TARGET),
                               kProducts,
                               kCodecs,
                               kUpdates,
                               kLayers,
                               kAttention,
                               kReductions,
                               kPeakLoops};

}  // namespace tritgrad::TRITGRAD_TARGET
