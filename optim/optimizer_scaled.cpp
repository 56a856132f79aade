// How the elements of one parameter are moved by a rule that scales the gradient: the storage reads
// the gradient itself, floats or the sums of an integer product, and no direction is written.
#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <vector>

#include "engine/kernel_table.h"
#include "optim/optimizer.h"

namespace tritgrad {

// The sums of a gradient's squares come from blocks of rows, and are added up in one order
// whichever the blocks are read in: tile by tile, and row by row in each.
void Optimizer::step_scaled(State& state, const Update& update, const Unit& unit,
                            UnitResult& result) {
  Storage& moment = state.moments.front();
  float v;
  moment.decode_master({unit.row_begin, 0, 1, unit.slot}, &v);
  const float factor = state.rule->gradient_factor(v);
  const std::int64_t rows = unit.row_end - unit.row_begin;
  const std::int64_t cols = state.parameter->shape().cols();
  const std::int64_t blocks = (cols + kBlock - 1) / kBlock;
  std::vector<double> squares(static_cast<std::size_t>(rows * blocks));
  const auto step = [&](std::int64_t top, std::int64_t bottom, std::int64_t block) {
    const Run tile{top, bottom, block * kBlock, std::min(cols, (block + 1) * kBlock), unit.slot};
    double* of_tile = squares.data() + (top - unit.row_begin) * blocks + block * (bottom - top);
    step_scaled_tile(state, update, tile, factor, of_tile, result);
  };
  if (state.parameter->gradient_source != nullptr) {
    // Tiles of the same columns after each other: they share an operand of the product.
    for (std::int64_t block = 0; block < blocks; ++block) {
      for (std::int64_t top = unit.row_begin; top < unit.row_end; top += GradientSource::kRows) {
        step(top, std::min(unit.row_end, top + GradientSource::kRows), block);
      }
    }
  } else {
    for (std::int64_t row = unit.row_begin; row < unit.row_end; ++row) {
      for (std::int64_t block = 0; block < blocks; ++block) step(row, row + 1, block);
    }
  }
  moment.add_sum(unit.slot,
                 state.rule->next_moments(v, std::accumulate(squares.begin(), squares.end(), 0.0),
                                          rows * cols),
                 rows * cols);
}

// squares[r]: of the gradient of row r of the tile. direction = factor * gradient.
void Optimizer::step_scaled_tile(State& state, const Update& update, const Run& tile, float factor,
                                 double* squares, UnitResult& result) {
  static_assert(GradientSource::kRows <= kMostRowsAtOnce);
  Storage& storage = state.parameter->storage();
  const std::int64_t count = tile.row_end - tile.row_begin;
  const std::int64_t n = tile.col_end - tile.col_begin;
  const Block first{tile.row_begin, tile.col_begin, n, tile.slot};
  const GradientSource* source = state.parameter->gradient_source;
  // A product takes long enough for what it is added to to arrive.
  if (source != nullptr) {
    Block block = first;
    for (; block.row < tile.row_end; ++block.row) storage.prefetch(block, Reading::kMaster);
  }
  std::array<Direction, GradientSource::kRows> directions;
  alignas(kAlignment) std::array<std::int32_t, GradientSource::kRows * kBlock> sums;
  alignas(kAlignment) std::array<float, GradientSource::kRows * kBlock> numbers;
  if (source != nullptr && source->read_sums != nullptr && !limits_gradient(state)) {
    const SumRows rows = source->read_sums(source->context, tile.row_begin, tile.row_end,
                                           tile.col_begin, tile.col_end, sums.data());
    std::array<std::int64_t, GradientSource::kRows> squared;
    kernels().sum_of_squared_sums(squared.data(), sums.data(), kBlock, rows.corrections, count, n);
    for (std::int64_t r = 0; r < count; ++r) {
      const double row_factor = rows.factors[r];
      const auto at = static_cast<std::size_t>(r);
      squares[r] = row_factor * row_factor * static_cast<double>(squared[at]);
      directions[at] = {sums.data() + r * kBlock, rows.corrections[r], rows.factors[r] * factor};
    }
  } else {
    const float* grad = read_gradient(state, tile, numbers.data());
    for (std::int64_t r = 0; r < count; ++r) {
      squares[r] = kernels().sum_of_squares(grad + r * n, n);
      directions[static_cast<std::size_t>(r)] = {grad + r * n, factor};
    }
  }
  const auto of_rows = std::span(directions).first(static_cast<std::size_t>(count));
  if (update.watch) {
    Block block = first;
    std::array<float, kBlock> scratch;
    for (const Direction& direction : of_rows) {
      state.watch.look(storage, block, as_floats(direction, n, scratch.data()), update.descent.lr,
                       result.seen);
      ++block.row;
    }
  }
  result.flips += storage.descend_rows(first, of_rows, update.descent);
}

}  // namespace tritgrad
