// The kernel table of one target. A target file defines
//   TRITGRAD_TARGET  namespace and name of the table,
//   TRITGRAD_ARCH    the xsimd architecture,
//   Eigen            the private name of Eigen in this object,
//   TRITGRAD_TILES   where products of int8 go through tile registers,
// and includes this file. Nothing here may end up in a symbol without the name of the target
// (tools/scripts/check_symbols.sh): otherwise the linker could give this code to a caller on
// another processor.
#pragma once

#include "ops/kernels/codecs/codecs-inl.h"
#include "ops/kernels/codecs/companded-inl.h"
#include "ops/kernels/codecs/groups-inl.h"
#include "ops/kernels/codecs/lowbit_loops-inl.h"
#include "ops/kernels/codecs/packed_codes-inl.h"
#include "ops/kernels/codecs/split-inl.h"
#include "ops/kernels/codecs/ternary_master_loops-inl.h"
#include "ops/kernels/layers/activation_loops-inl.h"
#include "ops/kernels/layers/batch_norm_loops-inl.h"
#include "ops/kernels/layers/column_sums-inl.h"
#include "ops/kernels/layers/layer_loops-inl.h"
#include "ops/kernels/layers/row_norm_loops-inl.h"
#include "ops/kernels/products/dot_trits-inl.h"
#include "ops/kernels/products/gemm-inl.h"
#include "ops/kernels/products/integer_loops-inl.h"
#include "ops/kernels/products/pack_across-inl.h"
#include "ops/kernels/products/pack_down-inl.h"
#include "ops/kernels/products/peak_loops-inl.h"
#include "ops/kernels/products/quantize_columns-inl.h"
#include "ops/kernels/products/quantize_rows-inl.h"
#include "ops/kernels/products/trit_panels-inl.h"
#include "ops/kernels/updates/carry-inl.h"
#include "ops/kernels/updates/flash-inl.h"
#include "ops/kernels/updates/flips-inl.h"
#include "ops/kernels/updates/latents-inl.h"
#include "ops/kernels/updates/levels-inl.h"
#include "ops/kernels/updates/microadam_loops-inl.h"
#include "ops/kernels/updates/rule_loops-inl.h"
#include "ops/kernels/updates/rules-inl.h"
#include "ops/kernels/updates/shared-inl.h"
#ifdef TRITGRAD_TILES
#include "ops/kernels/products/tile_product-inl.h"
#include "ops/kernels/products/tiles-inl.h"
#else
#include "ops/kernels/products/panel_product-inl.h"
#endif

#define TRITGRAD_QUOTE(text) #text
#define TRITGRAD_NAME(target) TRITGRAD_QUOTE(target)

namespace tritgrad::TRITGRAD_TARGET {

#ifdef TRITGRAD_TILES
constexpr auto multiply_panel = multiply_in_tiles<Tiles>;
#endif

const KernelTable kKernels = {
    .name = TRITGRAD_NAME(TRITGRAD_TARGET),
    .gemm = gemm,
    .quantize_int8 = wide::quantize_int8,
    .max_abs_product = max_abs_product,
    .quantize_columns = quantize_columns,
    .sum_int8 = wide::sum_int8,
    .dot_int8 = dot_int8,
    .dot_packed_trits = dot_packed_trits,
    .any_negative = any_negative,
    .raise_max_abs = raise_max_abs,
    .pack_down = wide::pack_down,
    .pack_across = wide::pack_across,
    .pack_trits_down = pack_trits_down,
    .pack_trits_across = pack_trits_across,
    .pack_latents_down = pack_latents_down,
    .pack_latents_across = pack_latents_across,
    .multiply_panel = multiply_panel,
    .rescale_sums = rescale_sums,
    .rescale_sums_by = rescale_sums_by,
    .random_u16 = random_u16,
    .decode_trits = decode_trits,
    .encode_trits = encode_trits,
    .trits_to_float = trits_to_float,
    .latent_to_trits = latent_to_trits,
    .latent_to_float = latent_to_float,
    .bf16_to_float = bf16_to_float,
    .float_to_bf16 = float_to_bf16,
    .encode_split8 = wide::encode_split8,
    .decode_split8 = wide::decode_split8,
    .encode_split16 = encode_split16,
    .decode_split16 = decode_split16,
    .encode_companded = wide::encode_companded,
    .decode_companded = wide::decode_companded,
    .encode_root = wide::encode_root,
    .decode_root = wide::decode_root,
    .pack_codes = wide::pack_codes,
    .unpack_codes = wide::unpack_codes,
    .encode_groups = wide::encode_groups,
    .decode_groups = decode_groups,
    .encode_fp8 = encode_fp8,
    .decode_fp8 = decode_fp8,
    .decode_ternary_master = decode_ternary_master,
    .descend = descend,
    .descend_ternary_master = descend_ternary_master,
    .quantize_levels = quantize_levels,
    .descend_ternary = descend_ternary,
    .descend_shared = descend_shared,
    .descend_latent = descend_latent,
    .adamw = adamw,
    .add_scaled = add_scaled,
    .sgd = sgd,
    .sign = sign,
    .lion = lion,
    .normalized = normalized,
    .divide_by_roots = divide_by_roots,
    .adam_gain = adam_gain,
    .carry_error = carry_error,
    .carry_trits = carry_trits,
    .limit = limit,
    .count_at_least = count_at_least,
    .find_at_least = find_at_least,
    .find_range = find_range,
    .quantize_feedback = quantize_feedback,
    .add_feedback = add_feedback,
    .flash_adamw = wide::flash_adamw,
    .flash_lion = wide::flash_lion,
    .flash_sgd = wide::flash_sgd,
    .relu = relu,
    .rectify_gradient = rectify_gradient,
    .squared_relu = squared_relu,
    .squared_relu_gradient = squared_relu_gradient,
    .tanh = tanh,
    .tanh_gradient = tanh_gradient,
    .add_to_sums = wide::add_to_sums,
    .add_squares_around = wide::add_squares_around,
    .add_products = wide::add_products,
    .batch_norm = batch_norm,
    .add_batch_norm_sums = wide::add_batch_norm_sums,
    .batch_norm_gradient = batch_norm_gradient,
    .row_norm = row_norm,
    .add_row_norm_gradients = add_row_norm_gradients,
    .row_norm_gradient = row_norm_gradient,
    .bytes_to_float = bytes_to_float,
    .square_roots = square_roots,
    .standardize_features = standardize_features,
    .max_pool = max_pool,
    .max_pool_gradient = max_pool_gradient,
    .all_finite = all_finite,
    .all_finite_bf16 = all_finite_bf16,
    .max_abs = max_abs,
    .sum = sum,
    .sum_of_magnitudes = sum_of_magnitudes,
    .sum_of_squares = sum_of_squares,
    .sum_of_squares_around = sum_of_squares_around,
    .row_norm_sums = row_norm_sums,
    .sum_of_squared_sums = sum_of_squared_sums,
};

}  // namespace tritgrad::TRITGRAD_TARGET
