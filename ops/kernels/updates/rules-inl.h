// Float arithmetic of update rules, and of bare trits whose rounding errors are carried on
// (optim/eco.h). The order of operations is that of reference.cpp and multiply-add is never fused,
// so the bits are the same everywhere.
#pragma once

#include "ops/kernels/layers/sums-inl.h"
#include "ops/kernels/simd-inl.h"
#include "ops/kernels/targets.h"
#include "ops/kernels/updates/levels-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

void descend(float* w, const float* direction, float lr, std::int64_t n) {
  const F32 rate(lr);
  std::int64_t i = 0;
  for (; i + kLanes<F32> <= n; i += kLanes<F32>) {
    write(w + i, read<F32>(w + i) - rate * read<F32>(direction + i));
  }
  reference::kKernels.updates.descend(w + i, direction + i, lr, n - i);
}

void quantize_levels(std::int16_t* levels, const Direction& direction,
                     const LevelRounding& rounding, std::int64_t n) {
  const std::int64_t done = n / kLanes<I32> * kLanes<I32>;
  with_direction(direction, rounding, [=](const auto& source) {
    const Levels vectors(source, rounding);
    for (std::int64_t i = 0; i < done; i += kLanes<I32>) write_narrow(levels + i, vectors.at(i));
  });
  reference::kKernels.updates.quantize_levels(levels + done, direction.from(done),
                                              rounding.from(done), n - done);
}

struct AdamwLanes {
  explicit AdamwLanes(const AdamwConstants& c)
      : beta1(c.beta1),
        one_minus_beta1(c.one_minus_beta1),
        beta2(c.beta2),
        one_minus_beta2(c.one_minus_beta2),
        inverse_bias1(c.inverse_bias1),
        inverse_bias2(c.inverse_bias2),
        eps(c.eps),
        weight_decay(c.weight_decay) {}

  // m and v become what they are after the update.
  void remember(const F32& g, F32& m, F32& v) const {
    m = beta1 * m + one_minus_beta1 * g;
    v = beta2 * v + (one_minus_beta2 * g) * g;
  }
  // The direction of those m and v; `root` becomes the root of v inverse_bias2.
  F32 direction(const F32& m, const F32& v, const F32& master, F32& root) const {
    root = sqrt(v * inverse_bias2);
    const F32 decay = weight_decay * master;
    return m * inverse_bias1 / (root + eps) + decay;
  }

  F32 beta1, one_minus_beta1, beta2, one_minus_beta2, inverse_bias1, inverse_bias2, eps,
      weight_decay;
};

void adamw(float* direction, float* m, float* v, const float* grad, const float* master,
           const AdamwConstants& constants, std::int64_t n) {
  const AdamwLanes lanes(constants);
  std::int64_t i = 0;
  for (; i + kLanes<F32> <= n; i += kLanes<F32>) {
    // If all is fp32, these are the tensors themselves.
    read_ahead(grad + i, kLanes<F32>);
    read_ahead(m + i, kLanes<F32>);
    read_ahead(v + i, kLanes<F32>);
    read_ahead(master + i, kLanes<F32>);
    F32 mean = read<F32>(m + i), square = read<F32>(v + i), root;
    lanes.remember(read<F32>(grad + i), mean, square);
    const F32 d = lanes.direction(mean, square, read<F32>(master + i), root);
    write(m + i, mean);
    write(v + i, square);
    write(direction + i, d);
  }
  reference::kKernels.updates.adamw(direction + i, m + i, v + i, grad + i, master + i, constants,
                                    n - i);
}

RowNormSums row_norm_sums(const float* dy, const float* x, const RowNorm& norm, std::int64_t n) {
  const F32 mean(norm.mean), inverse_std(norm.inverse_std);
  LaneSums sum_dz, sum_dz_z;
  std::int64_t i = 0;
  for (; i + LaneSums::kElements <= n; i += LaneSums::kElements) {
    float dz[LaneSums::kElements], z[LaneSums::kElements];
    for (std::int64_t j = 0; j < LaneSums::kElements; j += kLanes<F32>) {
      write(dz + j, read<F32>(norm.gain + i + j) * read<F32>(dy + i + j));
      write(z + j, (read<F32>(x + i + j) - mean) * inverse_std);
    }
    const auto part_of = [](const float* numbers, std::int64_t part) {
      return read_f64(numbers + part * LaneSums::kWidth);
    };
    sum_dz.add([&](std::int64_t part) { return part_of(dz, part); });
    sum_dz_z.add([&](std::int64_t part) { return part_of(dz, part) * part_of(z, part); });
  }
  const auto dz_at = [&](std::int64_t lane) { return double{norm.gain[i + lane] * dy[i + lane]}; };
  const auto z_at = [&](std::int64_t lane) {
    return double{(x[i + lane] - norm.mean) * norm.inverse_std};
  };
  return {sum_dz.total(n - i, dz_at),
          sum_dz_z.total(n - i, [&](std::int64_t lane) { return dz_at(lane) * z_at(lane); })};
}

std::int64_t carry_trits(std::int8_t* trits, float* momentum, const float* direction,
                         const float* gain, const CarryConstants& constants,
                         const std::uint16_t* noise, std::int64_t n) {
  constexpr std::int64_t kStep = kLanes<F32>, kBytes = kLanes<I8>;
  const F32 lr(constants.lr), alpha(constants.alpha), rescale(constants.rescale), most(1.5f);
  I32 changed(0);
  // Moves a vector of elements from i on; returns its trits.
  const auto carry = [&](std::int64_t i) __attribute__((always_inline)) {
    const I32 trit = read_i32(trits + i);
    const F32 exact = to_float(trit) - lr * read<F32>(direction + i);
    const F32 wanted = clamp(select(exact == exact, exact, F32(0.0f)), -most, most);
    const I32 stored =
        clamp(round_small(wanted, noise == nullptr ? nullptr : noise + i), I32(-1), I32(1));
    changed += one_if(stored != trit);
    F32 error = alpha * (wanted - to_float(stored));
    if (gain != nullptr) error = error / read<F32>(gain + i);
    write(momentum + i, rescale * (read<F32>(momentum + i) + error));
    return stored;
  };
  std::int64_t i = 0;
  for (; i + kBytes <= n; i += kBytes) {
    const I32 a = carry(i), b = carry(i + kStep);
    write(trits + i, narrow(a, b, carry(i + 2 * kStep), carry(i + 3 * kStep)));
  }
  std::int32_t numbers[kStep];
  for (; i + kStep <= n; i += kStep) {
    write(numbers, carry(i));
    for (std::int64_t lane = 0; lane < kStep; ++lane) {
      trits[i + lane] = static_cast<std::int8_t>(numbers[lane]);
    }
  }
  std::int64_t count = reference::kKernels.updates.carry_trits(
      trits + i, momentum + i, direction + i, gain == nullptr ? nullptr : gain + i, constants,
      noise == nullptr ? nullptr : noise + i, n - i);
  write(numbers, changed);
  for (const std::int32_t number : numbers) count += number;
  return count;
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
