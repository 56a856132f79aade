// What kernels are given in structures, and the constants of their contracts
// (engine/kernels/kernel_table.h).
#pragma once

#include <cstdint>

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

// ECO on trits; alpha, rescale: those of an ErrorCarrier.
struct CarryConstants {
  float lr, alpha, rescale;
};

struct SgdConstants {
  float momentum, fresh;  // fresh: 1 - dampening
  bool nesterov;
  float weight_decay;
  bool coupled;  // decay is added to the gradient, not to the direction
};

// One product C[m x n] = op(A)[m x k] op(B)[k x n] (+ C), row-major with leading dimensions.
struct GemmShape {
  std::int64_t m, n, k;
  bool transpose_a = false;  // A is stored [k x m]
  bool transpose_b = false;  // B is stored [n x k]
  bool accumulate = false;
};

// Neighbouring elements that share a scale in companded formats.
inline constexpr std::int64_t kCompandedGroup = 32;

// Neighbouring elements of a weight in split8 and of its moments in companded and root codes, all
// rounded to nearest, with the gradient of an update in fp32 or, if grad is null, in bf16. v,
// v_scales: of rules with a second moment.
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
// How many of them at a time, at most, and what their number must be a multiple of.
inline constexpr std::int64_t kMostFlashElements = 1280;
inline constexpr std::int64_t kFlashStep = 2 * kCompandedGroup;

// Lanes of sums in double: element i is added to lane i % kSumLanes, then the upper half of the
// lanes to the lower one until one is left.
inline constexpr std::int64_t kSumLanes = 32;

// Columns of a panel of bytes (multiply_panel), and what is known of the numbers, which decides how
// many products fit 16 bits.
inline constexpr std::int64_t kPanelColumns = 64;
enum class PanelRange {
  kTrits,      // either the other operand holds trits alone, or all bytes are at most 2
  kSevenBits,  // all bytes are at most 127
  kBytes,
};

// What batch norm knows of neighbouring columns, and whether a rectifier follows it.
struct NormColumns {
  const float* mean;
  const float* inverse_std;
  const float* gain;
  const float* bias;
  bool rectify;

  // Those from column i on.
  NormColumns from(std::int64_t i) const {
    return {mean + i, inverse_std + i, gain + i, bias + i, rectify};
  }
};

// What layer norm or RMS norm (mean 0) knows of one row.
struct RowNorm {
  float mean, inverse_std;
  const float* gain;
};
struct RowNormSums {
  double dz, dz_z;
};

}  // namespace tritgrad
