// How the elements of one parameter are moved by a rule whose direction is the gradient, scaled, or
// its signs: the storage reads the gradient itself, floats or the sums of an integer product, and
// no direction is written.
#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "engine/kernels/direction.h"
#include "engine/memory/parallel.h"
#include "optim/optimizer.h"

namespace tritgrad {

namespace {

// Blocks of rows whose sums of squares are kept until they are added up.
constexpr std::int64_t kSumsKept = 2048;
// Of fewer elements, waking another thread may take longer than their update.
constexpr std::int64_t kElementsPerThread = 4096;

}  // namespace

void Optimizer::step_unwritten(State& state, const Update& update, const Unit& unit,
                               FlipCounts& flips) {
  const auto step = [&](float factor) {
    return state.parameter->gradient_source != nullptr
               ? step_unwritten_tiles(state, update, unit, factor, flips)
               : step_unwritten_rows(state, update, unit, factor, flips);
  };
  if (state.form == Rule::DirectionForm::kSigns) {
    step(1.0f);
    return;
  }
  Storage& moment = state.moments.front();
  float v;
  moment.decode_master({unit.row_begin, 0, 1, unit.slot}, &v);
  const Rule::GradientForm form = state.rule->gradient_form();
  const double squares = step(form.factor(v));
  const std::int64_t elements = (unit.row_end - unit.row_begin) * state.parameter->shape().cols();
  moment.scalar()->add_sum(unit.slot, form.next_moments(v, squares, elements), elements);
}

// A gradient in memory is read once, along the rows. Returns its sum of squares, 0 with signs.
double Optimizer::step_unwritten_rows(State& state, const Update& update, const Unit& unit,
                                      float factor, FlipCounts& flips) {
  const std::int64_t cols = state.parameter->shape().cols();
  alignas(kAlignment) std::array<float, kMostBlocksAtOnce * kBlock> scratch;
  std::array<Direction, kMostBlocksAtOnce> directions;
  std::array<double, kMostBlocksAtOnce> squares;
  const bool signs = state.form == Rule::DirectionForm::kSigns;
  double total = 0.0;
  for (std::int64_t row = unit.row_begin; row < unit.row_end; ++row) {
    std::int64_t count = 0;  // of blocks at once; the row's last one may be shorter
    for (std::int64_t col = 0; col < cols; col += count * kBlock) {
      const std::int64_t n = std::min(kBlock, cols - col);
      count = std::clamp<std::int64_t>((cols - col) / kBlock, 1, kMostBlocksAtOnce);
      const float* grad =
          read_gradient(state, {row, row + 1, col, col + count * n, unit.slot}, scratch.data());
      const auto of_blocks = std::span(directions).first(static_cast<std::size_t>(count));
      for (Direction& direction : of_blocks) direction = {grad, factor, signs}, grad += n;
      descend_unwritten(state, update, {{row, col, n, unit.slot}, BlockSeries::Way::kRight},
                        of_blocks, signs ? nullptr : squares.data(), flips);
      if (!signs) total = std::accumulate(squares.data(), squares.data() + count, total);
    }
  }
  return total;
}

// A gradient that is computed when read is cheapest in tiles. Goes through a unit in strips of
// rows, and in a strip down tiles of the same columns, as they share an operand of the product that
// makes the gradient. Its squares are added up tile by tile and in each row by row, whichever the
// order in which the tiles were read: of a parameter that is one unit, threads share the tiles.
double Optimizer::step_unwritten_tiles(State& state, const Update& update, const Unit& unit,
                                       float factor, FlipCounts& flips) {
  constexpr std::int64_t kHeight = LazyGradient::kRows;
  const std::int64_t cols = state.parameter->shape().cols();
  const std::int64_t blocks = std::max<std::int64_t>(1, (cols + kBlock - 1) / kBlock);
  const std::int64_t together = std::min(blocks, kSumsKept / kHeight);
  const std::int64_t strip = together == blocks ? kSumsKept / blocks / kHeight * kHeight : kHeight;
  const std::int64_t tile_size =
      std::min(kHeight, unit.row_end - unit.row_begin) * std::min(kBlock, cols);
  const std::int64_t tiles_together =
      1 + (kElementsPerThread - 1) / std::max<std::int64_t>(1, tile_size);
  const bool signs = state.form == Rule::DirectionForm::kSigns;
  double total = 0.0;
  std::array<double, kSumsKept> sums;
  for (std::int64_t top = unit.row_begin; top < unit.row_end; top += strip) {
    const std::int64_t bottom = std::min(unit.row_end, top + strip);
    for (std::int64_t first = 0; first < blocks; first += together) {
      const std::int64_t last = std::min(blocks, first + together);
      const std::int64_t down = (bottom - top + kHeight - 1) / kHeight;
      const std::int64_t tiles = down * (last - first);
      std::array<FlipCounts, kSumsKept / kHeight> results;
      const auto step = [&](std::int64_t nth) {
        const std::int64_t block = first + nth / down, row = top + nth % down * kHeight;
        const std::int64_t row_end = std::min(bottom, row + kHeight);
        const Run tile{row, row_end, block * kBlock, std::min(cols, (block + 1) * kBlock),
                       unit.slot};
        step_unwritten_tile(
            state, update, tile, factor,
            sums.data() + (row - top) * (last - first) + (block - first) * (row_end - row),
            results[static_cast<std::size_t>(nth)]);
      };
      parallel_ranges(tiles, tiles_together, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t nth = begin; nth < end; ++nth) step(nth);
      });
      for (std::int64_t nth = 0; nth < tiles; ++nth) {
        flips += results[static_cast<std::size_t>(nth)];
      }
      if (signs) continue;
      total = std::accumulate(sums.data(), sums.data() + (bottom - top) * (last - first), total);
    }
  }
  return total;
}

// squares[r]: of the gradient of row r of the tile, unless signs are all that counts.
void Optimizer::step_unwritten_tile(State& state, const Update& update, const Run& tile,
                                    float factor, double* squares, FlipCounts& flips) {
  static_assert(LazyGradient::kRows <= kMostBlocksAtOnce);
  const std::int64_t count = tile.row_end - tile.row_begin;
  const std::int64_t n = tile.col_end - tile.col_begin;
  const LazyGradient& source = *state.parameter->gradient_source;
  const BlockSeries series{{tile.row_begin, tile.col_begin, n, tile.slot}, BlockSeries::Way::kDown};
  std::array<Direction, LazyGradient::kRows> directions;
  const auto of_rows = std::span(directions).first(static_cast<std::size_t>(count));
  const bool signs = state.form == Rule::DirectionForm::kSigns;
  if (source.read_sums == nullptr || limits_gradient(state)) {
    alignas(kAlignment) std::array<float, LazyGradient::kRows * kBlock> numbers;
    const float* grad = read_gradient(state, tile, numbers.data());
    for (Direction& direction : of_rows) direction = {grad, factor, signs}, grad += n;
    return descend_unwritten(state, update, series, of_rows, signs ? nullptr : squares, flips);
  }
  alignas(kAlignment) std::array<std::int32_t, LazyGradient::kRows * kBlock> sums;
  const SumRows rows =
      source.read_sums(source.context, tile.row_begin, tile.row_end, tile.col_begin, tile.col_end,
                       sums.data(), memory_of(state, tile));
  for (std::int64_t r = 0; r < count; ++r) {
    const float row_factor = rows.factors[r];
    // A whole number times a factor that is not 0 is 0 only if it is.
    const auto sign = static_cast<float>((row_factor > 0.0f) - (row_factor < 0.0f));
    of_rows[static_cast<std::size_t>(r)] = {sums.data() + r * kBlock, rows.corrections[r],
                                            signs ? sign * factor : row_factor * factor, signs};
  }
  descend_unwritten(state, update, series, of_rows, signs ? nullptr : squares, flips);
  if (signs) return;
  for (std::int64_t r = 0; r < count; ++r) {
    const double row_factor = rows.factors[r];
    squares[r] = row_factor * row_factor * squares[r];
  }
}

void Optimizer::descend_unwritten(State& state, const Update& update, const BlockSeries& series,
                                  std::span<const Direction> directions, double* squares,
                                  FlipCounts& flips) {
  Storage& storage = state.parameter->storage();
  if (update.watch) {
    std::array<float, kBlock> scratch;
    for (std::size_t i = 0; i < directions.size(); ++i) {
      const Block block = series[i];
      state.watch.before_update(storage, block, as_floats(directions[i], block.n, scratch.data()));
    }
  }
  flips += storage.descend({series, directions, update.descent, squares});
}

}  // namespace tritgrad
