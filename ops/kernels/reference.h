// The scalar kernels one by one. Vector kernels hand them the elements that do not fill a vector.
//
// They are ordinary functions of a baseline object, so a call from a vector object shares no inline
// code with it. The contracts are those of engine/kernels/kernel_table.h.
#pragma once

#include "engine/kernels/kernel_table.h"

namespace tritgrad::reference {

// Bytes [begin, end) of n packed trits; `trits` and `packed` point to element 0 and byte 0, because
// the place of an element depends on n.
void encode_trit_bytes(std::uint8_t* packed, const std::int8_t* trits, std::int64_t n,
                       std::int64_t begin, std::int64_t end);
void encode_trits(std::uint8_t* packed, const std::int8_t* trits, std::int64_t n);
void decode_trits(std::int8_t* trits, std::int64_t ld, const std::uint8_t* packed,
                  std::int64_t ld_packed, std::int64_t rows, std::int64_t n);
void dot_packed_trits(std::int32_t* sums, const std::uint8_t* packed, std::int64_t row_bytes,
                      std::int64_t rows, const std::int8_t* x, std::int64_t n);
void pack_trits_down(std::uint8_t* panels, std::int64_t ld_panels, const std::uint8_t* packed,
                     std::int64_t ld_packed, std::int64_t rows, std::int64_t first,
                     std::int64_t last);
void pack_trits_across(std::uint8_t* panel, const std::uint8_t* packed, std::int64_t ld_packed);
void trits_to_float(float* out, const std::int8_t* trits, std::int64_t n);
void latent_to_trits(std::int8_t* trits, const std::int8_t* codes, int threshold, std::int64_t n);
void pack_latents_down(std::uint8_t* panels, std::int64_t ld_panels, const std::int8_t* codes,
                       std::int64_t ld, std::int64_t rows, std::int64_t columns, int threshold);
void pack_latents_across(std::uint8_t* panel, const std::int8_t* codes, std::int64_t ld,
                         std::int64_t depth, int threshold);
void latent_to_float(float* out, const std::int8_t* codes, int threshold, std::int64_t n);
void bf16_to_float(float* out, const std::uint16_t* in, std::int64_t n);
void float_to_bf16(std::uint16_t* out, const float* in, const std::uint16_t* noise, std::int64_t n);

void descend(float* w, const float* direction, float lr, std::int64_t n);
void quantize_levels(std::int16_t* levels, const Direction& direction,
                     const LevelRounding& rounding, std::int64_t n);
void descend_ternary(FlipCounts* counts, std::int8_t* trits, std::int64_t ld,
                     std::int8_t* accumulators, std::int64_t ld_a, const DirectionRows& rows,
                     const FlipPolicy& policy);
void descend_shared(FlipCounts* counts, std::int8_t* trits, std::int64_t ld, std::int8_t* shared,
                    std::int64_t ld_shared, const DirectionRows& rows, int sharing, int turn);
std::int64_t carry_trits(std::int8_t* trits, float* momentum, const float* direction,
                         const float* gain, const CarryConstants& constants,
                         const std::uint16_t* noise, std::int64_t n);

void adamw(float* direction, float* m, float* v, const float* grad, const float* master,
           const AdamwConstants& constants, std::int64_t n);

}  // namespace tritgrad::reference
