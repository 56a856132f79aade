// Kernels that update weights and the moments of update rules. No two arrays overlap.
#pragma once

#include <cstdint>

#include "engine/formats/flips.h"
#include "engine/kernels/codecs.h"
#include "engine/kernels/direction.h"
#include "engine/kernels/kernels.h"

namespace tritgrad {

// Constants of one AdamW step, computed once per parameter in double (optim/rules/adam.h).
struct AdamwConstants {
  float beta1, beta2;
  float one_minus_beta1, one_minus_beta2;
  float inverse_bias1;  // 1 / (1 - beta1^t)
  float inverse_bias2;  // 1 / (1 - beta2^t)
  float eps;
  float weight_decay;  // decoupled
};

struct LionConstants {
  float beta1, beta2;
  float one_minus_beta1, one_minus_beta2;
};

struct SgdConstants {
  float momentum, fresh;  // fresh: 1 - dampening
  bool nesterov;
  float weight_decay;
  bool coupled;  // decay is added to the gradient, not to the direction
};

// Constants of `normalized` with a momentum (optim/rules/normalized.h).
struct NormalizedConstants {
  float beta, one_minus_beta;
  float inverse_bias;
  float momentum, fresh;  // fresh: 1 - momentum
  float limit;            // of elements of the normalised gradient; 0: none
};

// Constants of ECO on trits; alpha and rescale are those of ErrorFeedback.
struct CarryConstants {
  float lr, alpha, rescale;
};

// A block of packed trits that an update with error feedback moves in one pass, with its gradient
// and the moments of its rule. The first moment is fp32, or, if m is null, in int8 codes with their
// scales (CodecKernels::encode_groups).
struct CarriedTrits {
  const float* grad;
  std::uint8_t* trits;
  float* m;
  std::int8_t* m_codes;
  std::uint16_t* m_scales;
  float* v;       // of AdamW
  double* v_sum;  // out, of `normalized`: the sum of what v becomes (ReductionKernels::sum)
  // The noise that rounds trits and codes, from number first_noise on; null: to nearest.
  const RandomKey* trit_key;
  const RandomKey* m_key;
  std::uint64_t first_noise;
};

// Codes of MicroAdam's error feedback: a stream of 2 to 8 bits for each element of a chunk,
// little-endian, between the bounds, low and high in bf16, of its bucket. With u = (high - low +
// guard) / (2^bits - 1), code c means low + c u; x is encoded as floor((x - low) / u + r), r = 1/2
// or (noise + 0.5) / 65536, between bounds rounded outwards.
struct Feedback {
  std::uint8_t* codes;
  std::uint16_t* bounds;
  int bits;
  std::int64_t bucket;  // elements
  float guard;          // 0 but in a study's code
};
inline constexpr std::int64_t kMostFeedback = 4096;

// Neighbouring elements of a weight in split8 and of its moments in companded and root codes, all
// rounded to nearest, with the gradient of an update in fp32 or, if grad is null, in bf16. Only
// rules with a second moment have v and v_scales.
struct FlashElements {
  const float* grad;
  const std::uint16_t* bf16_grad;
  std::uint16_t* value;
  std::int8_t* correction;
  std::int8_t* m;
  std::uint16_t* m_scales;
  std::uint8_t* v;
  std::uint16_t* v_scales;
};
// The most of them at a time, and what their number must be a multiple of.
inline constexpr std::int64_t kMostFlashElements = 1280;
inline constexpr std::int64_t kFlashStep = 2 * kCompandedGroup;

struct UpdateKernels {
  // ---- weights ---------------------------------------------------------------------------------
  // w[i] -= lr * direction[i]
  void (*descend)(float* w, const float* direction, float lr, std::int64_t n);
  // Does descend() on masters and returns how many values of decode_ternary_master() change, of
  // those that are numbers.
  std::int64_t (*descend_ternary_master)(float* master, const float* direction, float lr,
                                         float gamma, std::int64_t n);
  void (*quantize_levels)(std::int16_t* levels, const Direction& direction,
                          const LevelRounding& rounding, std::int64_t n);
  // Does accumulate() (engine/formats/flips.h) with a direction's levels on separate trits and
  // accumulators. Those of the rows are `ld` and `ld_a` apart, or share one row of each where that
  // is 0. Each row has its counts.
  void (*descend_ternary)(FlipCounts* counts, std::int8_t* trits, std::int64_t ld,
                          std::int8_t* accumulators, std::int64_t ld_a, const DirectionRows& rows,
                          const FlipPolicy& policy);
  // Does update_shared() (engine/formats/shared_accumulator.h) with the levels of n neighbours,
  // every `sharing` (4, 8 or 16) of which share a byte; limits <= shared_threshold(sharing), 0 <=
  // turn < sharing.
  void (*descend_shared)(FlipCounts* counts, std::int8_t* trits, std::int64_t ld,
                         std::int8_t* shared, std::int64_t ld_shared, const DirectionRows& rows,
                         int sharing, int turn);
  // Does descend_ternary (carry, step one trit) on codes c = K T + A, K = 2 threshold + 1; 0 <=
  // threshold <= 42, limits <= 127.
  FlipCounts (*descend_latent)(std::int8_t* codes, std::int64_t ld, const DirectionRows& rows,
                               int threshold, int hysteresis);

  // ---- rules -----------------------------------------------------------------------------------
  // m, v <- their moving averages; direction = m^ / (sqrt(v^) + eps) + weight_decay * master.
  void (*adamw)(float* direction, float* m, float* v, const float* grad, const float* master,
                const AdamwConstants& constants, std::int64_t n);
  // m <- momentum m + fresh g; direction = m, or g + momentum m with nesterov.
  void (*sgd)(float* direction, float* m, const float* grad, float momentum, float fresh,
              bool nesterov, std::int64_t n);
  // direction = sign(g); 0 for zeros, infinities and NaN.
  void (*sign)(float* direction, const float* grad, std::int64_t n);
  // direction = sign(beta1 m + (1 - beta1) g), as above; m <- beta2 m + (1 - beta2) g.
  void (*lion)(float* direction, float* m, const float* grad, const LionConstants& constants,
               std::int64_t n);
  // direction = g (1 / sqrt(v inverse_bias)), 0 where that root is not positive; then v <- beta v +
  // (1 - beta) g^2.
  void (*normalized)(float* direction, float* v, const float* grad, float beta,
                     float one_minus_beta, float inverse_bias, std::int64_t n);
  // direction = rate direction / (sqrt(squares) + eps); 0 stays 0.
  void (*divide_by_roots)(float* direction, const float* squares, float rate, float eps,
                          std::int64_t n);

  // ---- errors carried in the momentum (ECO) ----------------------------------------------------
  // gain = d direction / d m of adamw, with v after the update.
  void (*adam_gain)(float* gain, const float* v, float inverse_bias1, float inverse_bias2,
                    float eps, std::int64_t n);
  // momentum <- rescale (momentum + alpha (wanted - stored) / gain); a null gain is 1.
  void (*carry_error)(float* momentum, const float* wanted, const float* stored, const float* gain,
                      float alpha, float rescale, std::int64_t n);
  // Does descend and carry_error on trits. wanted = trit - lr direction within +-1.5, 0 for NaN;
  // stored, the new trit, is that nearest to it (a half: 0), or floor(wanted + (noise + 0.5) /
  // 65536) within +-1. Returns how many trits have changed.
  std::int64_t (*carry_trits)(std::int8_t* trits, float* momentum, const float* direction,
                              const float* gain, const CarryConstants& constants,
                              const std::uint16_t* noise, std::int64_t n);

  // Whole updates of a block of n <= kBlock trits: decoding, the rule, carry_trits and encoding.
  // They return how many trits have changed. Of `normalized`, v is one number for all elements.
  std::int64_t (*carry_normalized)(const CarriedTrits& at, const NormalizedConstants& constants,
                                   float v, const CarryConstants& carry, std::int64_t n);
  std::int64_t (*carry_sgd)(const CarriedTrits& at, const SgdConstants& constants,
                            const CarryConstants& carry, std::int64_t n);
  std::int64_t (*carry_adamw)(const CarriedTrits& at, const AdamwConstants& constants,
                              const CarryConstants& carry, std::int64_t n);

  // ---- MicroAdam -------------------------------------------------------------------------------
  // Brings x[i] within +-limit; NaN becomes 0.
  void (*limit)(float* x, float limit, std::int64_t n);
  // Writes the indices of the k largest magnitudes of n <= kMostFeedback finite numbers, 0 < k <=
  // n, in rising order; of equal ones the lowest indices.
  void (*select_largest)(std::uint16_t* index, const float* x, std::int64_t k, std::int64_t n);
  // out[i] = grad[i] + what the codes mean.
  void (*add_feedback)(float* out, const float* grad, const Feedback& feedback, std::int64_t n);
  // Encodes n <= kMostFeedback finite numbers, rounded to nearest or, unless it is null, by noise.
  void (*store_feedback)(const Feedback& feedback, const float* x, const std::uint16_t* noise,
                         std::int64_t n);

  // ---- whole updates in one pass ---------------------------------------------------------------
  // They give n elements what decoding, the rule, descend() and encoding give them, to the bit, but
  // for the sign of a weight that is zero. They return false, with nothing written, where they
  // cannot: n is above kMostFlashElements or no multiple of kFlashStep, a number among them takes
  // special care (infinities, NaN, magnitudes at either end of the range), or there is no such pass
  // on this instruction set.
  bool (*flash_adamw)(const FlashElements& at, const AdamwConstants& constants, float lr,
                      std::int64_t n);
  bool (*flash_lion)(const FlashElements& at, const LionConstants& constants, float weight_decay,
                     float lr, std::int64_t n);
  bool (*flash_sgd)(const FlashElements& at, const SgdConstants& constants, float lr,
                    std::int64_t n);
};

}  // namespace tritgrad
