// How the elements of one parameter are moved by a rule that scales the gradient: the storage reads
// the gradient itself, floats or the sums of an integer product, and no direction is written.
#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "engine/kernel_table.h"
#include "optim/optimizer.h"

namespace tritgrad {

namespace {

// Blocks of rows whose sums of squares are kept until they are added up.
constexpr std::int64_t kSumsKept = 2048;

}  // namespace

// Goes through a unit in strips of rows, and in a strip down tiles of the same columns, as they
// share an operand of the product that makes the gradient. Its squares are added up tile by tile
// and in each row by row, whichever the order in which the tiles were read.
void Optimizer::step_scaled(State& state, const Update& update, const Unit& unit,
                            UnitResult& result) {
  Storage& moment = state.moments.front();
  float v;
  moment.decode_master({unit.row_begin, 0, 1, unit.slot}, &v);
  const float factor = state.rule->gradient_factor(v);
  const std::int64_t cols = state.parameter->shape().cols();
  const std::int64_t blocks = std::max<std::int64_t>(1, (cols + kBlock - 1) / kBlock);
  // A gradient that is computed when read is cheapest in tiles, one that lies in memory row by row.
  const std::int64_t height =
      state.parameter->gradient_source != nullptr ? GradientSource::kRows : 1;
  const std::int64_t together = std::min(blocks, kSumsKept / height);
  const bool whole_rows = height > 1 && together == blocks;
  const std::int64_t strip = whole_rows ? kSumsKept / blocks / height * height : height;
  double squares = 0.0;
  std::array<double, kSumsKept> sums;
  for (std::int64_t top = unit.row_begin; top < unit.row_end; top += strip) {
    const std::int64_t bottom = std::min(unit.row_end, top + strip);
    for (std::int64_t first = 0; first < blocks; first += together) {
      const std::int64_t last = std::min(blocks, first + together);
      for (std::int64_t block = first; block < last; ++block) {
        for (std::int64_t row = top; row < bottom; row += height) {
          const std::int64_t row_end = std::min(bottom, row + height);
          const Run tile{row, row_end, block * kBlock, std::min(cols, (block + 1) * kBlock),
                         unit.slot};
          step_scaled_tile(
              state, update, tile, factor,
              sums.data() + (row - top) * (last - first) + (block - first) * (row_end - row),
              result);
        }
      }
      squares =
          std::accumulate(sums.data(), sums.data() + (bottom - top) * (last - first), squares);
    }
  }
  const std::int64_t elements = (unit.row_end - unit.row_begin) * cols;
  moment.add_sum(unit.slot, state.rule->next_moments(v, squares, elements), elements);
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
    std::array<std::int64_t, GradientSource::kRows> of_sums;
    kernels().sum_of_squared_sums(of_sums.data(), sums.data(), kBlock, rows.corrections, count, n);
    for (std::int64_t r = 0; r < count; ++r) {
      const double row_factor = rows.factors[r];
      const auto at = static_cast<std::size_t>(r);
      squares[r] = row_factor * row_factor * static_cast<double>(of_sums[at]);
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
