// How the elements of one parameter are moved by a rule that scales the gradient: the storage reads
// the gradient itself, floats or the sums of an integer product, and no direction is written.
#include <algorithm>
#include <array>

#include "engine/kernel_table.h"
#include "optim/optimizer.h"

namespace tritgrad {

// What a unit of a parameter's update knows of the moment, and makes of it.
struct Optimizer::Scaling {
  float v;
  float factor;          // direction = factor * gradient
  double squares = 0.0;  // of the gradient's `elements` so far
  std::int64_t elements = 0;
};

void Optimizer::step_scaled(State& state, const Update& update, const Unit& unit,
                            UnitResult& result) {
  Storage& moment = state.moments.front();
  Scaling scaling{};
  moment.decode_master({unit.row_begin, 0, 1, unit.slot}, &scaling.v);
  scaling.factor = state.rule->gradient_factor(scaling.v);
  const std::int64_t cols = state.parameter->shape().cols();
  // A gradient that is computed when read is cheapest in tiles, one that lies in memory row by row.
  const bool in_tiles = state.parameter->gradient_source != nullptr;
  const std::int64_t together = in_tiles ? GradientSource::kRows : 1;
  for (std::int64_t top = unit.row_begin; top < unit.row_end; top += together) {
    const std::int64_t bottom = std::min(unit.row_end, top + together);
    for (std::int64_t left = 0; left < cols; left += kBlock) {
      const Run tile{top, bottom, left, std::min(cols, left + kBlock), unit.slot};
      step_scaled_tile(state, update, tile, scaling, result);
    }
  }
  moment.add_sum(unit.slot, state.rule->next_moments(scaling.v, scaling.squares, scaling.elements),
                 scaling.elements);
}

void Optimizer::step_scaled_tile(State& state, const Update& update, const Run& tile,
                                 Scaling& scaling, UnitResult& result) {
  Storage& storage = state.parameter->storage();
  const std::int64_t n = tile.col_end - tile.col_begin;
  const auto descend = [&](std::int64_t row, const Direction& direction, double squares) {
    const Block block{row, tile.col_begin, n, tile.slot};
    scaling.squares += squares;
    if (update.watch) {
      std::array<float, kBlock> numbers;
      state.watch.look(storage, block, as_floats(direction, n, numbers.data()), update.descent.lr,
                       result.seen);
    }
    result.flips += storage.descend(block, direction, update.descent);
  };
  scaling.elements += tile.size();
  const GradientSource* source = state.parameter->gradient_source;
  // A product takes long enough for what it is added to to arrive.
  if (source != nullptr) {
    for (std::int64_t row = tile.row_begin; row < tile.row_end; ++row) {
      storage.prefetch({row, tile.col_begin, n}, Reading::kMaster);
    }
  }
  if (source != nullptr && source->read_sums != nullptr && !limits_gradient(state)) {
    alignas(kAlignment) std::array<std::int32_t, GradientSource::kRows * kBlock> sums;
    const SumRows rows = source->read_sums(source->context, tile.row_begin, tile.row_end,
                                           tile.col_begin, tile.col_end, sums.data());
    for (std::int64_t r = 0; r < tile.row_end - tile.row_begin; ++r) {
      const std::int32_t* row = sums.data() + r * kBlock;
      const double factor = rows.factors[r];
      const std::int64_t squares = kernels().sum_of_squared_sums(row, rows.corrections[r], n);
      descend(tile.row_begin + r, {row, rows.corrections[r], rows.factors[r] * scaling.factor},
              factor * factor * static_cast<double>(squares));
    }
    return;
  }
  alignas(kAlignment) std::array<float, GradientSource::kRows * kBlock> numbers;
  const float* grad = read_gradient(state, tile, numbers.data());
  for (std::int64_t row = tile.row_begin; row < tile.row_end; ++row, grad += n) {
    descend(row, {grad, scaling.factor}, kernels().sum_of_squares(grad, n));
  }
}

}  // namespace tritgrad
