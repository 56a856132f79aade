// Float arithmetic of update rules. The order of operations is that of reference.cpp and
// multiply-add is never fused, so the bits are the same everywhere.
#pragma once

#include "ops/kernels/layers/sums-inl.h"
#include "ops/kernels/simd-inl.h"
#include "ops/kernels/targets.h"
#include "ops/kernels/updates/levels-inl.h"
#include "ops/kernels/updates/rule_lanes-inl.h"

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

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
