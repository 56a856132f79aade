// Trits, packed, bare or with an accumulator in one byte: the specification of their kernels.
#include <algorithm>
#include <cmath>

#include "engine/formats/format.h"
#include "ops/kernels/reference.h"

namespace tritgrad::reference {

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

}  // namespace tritgrad::reference
