#include "optim/parameter_update.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>

#include "engine/formats/descend.h"
#include "engine/kernels/direction.h"
#include "engine/kernels/updates.h"
#include "engine/memory/parallel.h"
#include "engine/memory/prefetch.h"
#include "optim/rules/microadam.h"

namespace tritgrad {
namespace {

constexpr std::int64_t kMaxChunk = Microadam::kElements;
static_assert(kRuleChunk <= kMostFlashElements, "or no chunk would be updated in one pass");
// Elements of a chunk that is moved by its gradient as that lies in memory.
constexpr std::int64_t kGradientChunk = kMostBlocksAtOnce * kBlock;
// Blocks of rows whose sums of squares are kept until they are added up.
constexpr std::int64_t kSumsKept = 2048;
// Waking another thread may take longer than the update of fewer elements.
constexpr std::int64_t kElementsPerThread = 4096;

// Returns the rows of a unit. Units depend on the shape alone, never on the threads, and their
// results are joined in order.
std::int64_t unit_rows(const Shape& shape, const Rule& rule) {
  const std::int64_t wanted = least_rows_per_slot(shape);
  const std::int64_t together =
      std::lcm(LazyGradient::kRows, Chunks(shape, rule.chunk_limit()).rows_per_chunk());
  // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a chunk has one row at least
  return (wanted + together - 1) / together * together;
}

// Calls body(block, offset in the chunk) for the chunk's blocks, of `longest` elements at most.
template <typename Body>
void for_each_block_of(const Chunk& chunk, std::int64_t longest, Body&& body) {
  std::int64_t offset = 0;
  for (std::int64_t row = chunk.row_begin; row < chunk.row_end; ++row) {
    for (std::int64_t col = chunk.col_begin; col < chunk.col_end; col += longest) {
      const Block block{row, col, std::min(longest, chunk.col_end - col), chunk.slot};
      body(block, offset);
      offset += block.n;
    }
  }
}

// Calls body likewise for blocks that are as long as the storage takes them.
template <typename Body>
void for_each_block_of(const Chunk& chunk, const Storage& storage, Body&& body) {
  if (storage.spec().joins_rows(storage.shape().cols())) {
    return body(Block{chunk.row_begin, 0, chunk.size(), chunk.slot}, std::int64_t{0});
  }
  for_each_block_of(chunk, storage.spec().takes_long_blocks() ? kMaxChunk : kBlock, body);
}

void decode_masters(const Storage& storage, const Chunk& chunk, float* out) {
  for_each_block_of(chunk, storage, [&](const Block& block, std::int64_t offset) {
    storage.decode_master(block, out + offset);
  });
}

Rule::DirectionForm direction_form(const TrainedParameter& trained) {
  const Rule::DirectionForm form = trained.rule->gradient_form().direction;
  const bool in_numbers =
      std::all_of(trained.moments.begin(), trained.moments.end(),
                  [](const Storage& m) { return m.spec().kind == FormatKind::kScalar; });
  // Formats that do not hold bare trits want numbers: signs written for a chunk at once cost less
  // than for each of its blocks.
  const bool reads_signs = trained.parameter->spec().format.traits().holds_trits;
  if (!in_numbers || (form == Rule::DirectionForm::kSigns && !reads_signs)) {
    return Rule::DirectionForm::kWritten;
  }
  return form;
}

}  // namespace

bool has_memory(const Rule& rule, const Shape& shape) {
  return !rule.moments().empty() || !rule.planes(shape).empty();
}

TrainedParameter::TrainedParameter(Parameter& parameter_, const GroupSpec& group_)
    : parameter(&parameter_), group(group_) {
  const Shape& shape = parameter->shape();
  if (group.eco != EcoForm::kOff) check_eco(group.rule, parameter->spec().format);
  rule = make_rule(group.rule);
  moment_specs = rule->moments();
  for (const MomentSpec& moment : moment_specs) {
    moments.emplace_back(group.format_of(moment), shape, Category::kMoments);
  }
  if (group.eco == EcoForm::kOff) {
    fused = FusedSplit24::of(*rule, parameter->storage(), moments);
  } else {
    carries = FusedCarry::of(*rule, parameter->storage(), moments);
  }
  plane_specs = rule->planes(shape);
  std::vector<Plane> attached;
  for (const PlaneSpec& spec : plane_specs) {
    const Buffer& buffer =
        planes.emplace_back(static_cast<std::size_t>(spec.bytes()), Category::kMoments);
    attached.push_back({spec, buffer.bytes()});
  }
  rule->attach(shape, attached);
  form = direction_form(*this);
  if (group.lr > 0.0 && parameter->spec().role == Role::kWeight) {
    watch = StalledUpdates(parameter->spec(), group.eco);
  }
  if (has_memory(*rule, shape)) updates = Buffer(sizeof(std::int64_t), Category::kMoments);
}

struct ParameterUpdate::Scratch {
  // A power of two between them would make loads from one wait for stores to the others.
  using Numbers = std::array<float, kMaxChunk + 5 * kAlignment / sizeof(float)>;
  alignas(kAlignment) Numbers grad, weight, direction, gain;
  alignas(kAlignment) std::array<Numbers, kMaxMoments> moments;
};

ParameterUpdate::ParameterUpdate(TrainedParameter& trained, const Descent& descent,
                                 const EcoStep& eco, float gradient_scale, bool is_watched)
    : trained_(trained),
      parameter_(*trained.parameter),
      storage_(trained.parameter->storage()),
      lazy_(trained.parameter->lazy_gradient),
      descent_(descent),
      eco_(eco),
      gradient_scale_(gradient_scale),
      is_watched_(is_watched),
      // Only for rules that look at every element alone and do not mind how a parameter is cut.
      in_tiles_(lazy_ != nullptr && trained.rule->chunk_limit() == kRuleChunk),
      in_place_(storage_.fp32_data() != nullptr ||
                std::any_of(trained.moments.begin(), trained.moments.end(),
                            [](const Storage& m) { return m.fp32_data() != nullptr; })),
      adds_sums_(
          std::any_of(trained.moments.begin(), trained.moments.end(),
                      [](const Storage& m) { return m.spec().kind == FormatKind::kScalar; })),
      is_written_(trained.form == Rule::DirectionForm::kWritten),
      measures_(trained.form == Rule::DirectionForm::kScaledGradient) {}

FlipCounts ParameterUpdate::run() {
  const Shape& shape = parameter_.shape();
  const std::int64_t rows_per_unit = unit_rows(shape, *trained_.rule);
  std::array<FlipCounts, kSlots> results{};
  parallel_ranges(shape.rows(), rows_per_unit, [&](std::int64_t begin, std::int64_t end) {
    const Unit unit{begin, end, begin / rows_per_unit};
    update_unit(unit, results[static_cast<std::size_t>(unit.slot)]);
  });
  FlipCounts total;
  for (const FlipCounts& flips : results) total += flips;
  return total;
}

void ParameterUpdate::update_unit(const Unit& unit, FlipCounts& flips) {
  const auto walk = [&](float factor) {
    return in_tiles_ ? walk_tiles(unit, factor, flips) : walk_memory(unit, factor, flips);
  };
  if (!measures_) {
    walk(1.0f);
    return;
  }
  Storage& moment = trained_.moments.front();
  float v;
  moment.decode_master({unit.row_begin, 0, 1, unit.slot}, &v);
  const Rule::GradientForm form = trained_.rule->gradient_form();
  const double squares = walk(form.factor(v));
  const std::int64_t elements = (unit.row_end - unit.row_begin) * parameter_.shape().cols();
  moment.scalar()->add_sum(unit.slot, form.next_moments(v, squares, elements), elements);
}

// A gradient in memory is read along the rows.
double ParameterUpdate::walk_memory(const Unit& unit, float factor, FlipCounts& flips) {
  Scratch scratch;
  std::array<double, kGradientChunk> squares;
  double total = 0.0;
  const std::int64_t limit = is_written_ ? trained_.rule->chunk_limit() : kGradientChunk;
  Chunks(parameter_.shape(), limit)
      .for_each(unit.row_begin, unit.row_end, unit.slot, [&](const Chunk& chunk) {
        update_chunk(chunk, factor, squares.data(), scratch, flips);
        if (!measures_) return;
        total = std::accumulate(squares.data(), squares.data() + chunk.blocks(), total);
      });
  return total;
}

// A gradient that is computed when read is cheapest in tiles, which stay in the cache. This goes
// through a unit in strips of rows, and in a strip down tiles of the same columns, as they share an
// operand of the product that makes the gradient; but where a moment is a sum, which the rule adds
// up, along the rows. Squares are added up tile by tile and in each row by row, whichever the order
// in which the tiles were read: of a parameter that is one unit, threads share the tiles.
double ParameterUpdate::walk_tiles(const Unit& unit, float factor, FlipCounts& flips) {
  constexpr std::int64_t kHeight = LazyGradient::kRows;
  const std::int64_t cols = parameter_.shape().cols();
  const std::int64_t blocks = std::max<std::int64_t>(1, (cols + kBlock - 1) / kBlock);
  const std::int64_t together = std::min(blocks, kSumsKept / kHeight);
  const std::int64_t strip = together == blocks ? kSumsKept / blocks / kHeight * kHeight : kHeight;
  const std::int64_t tile_size =
      std::min(kHeight, unit.row_end - unit.row_begin) * std::min(kBlock, cols);
  const std::int64_t tiles_a_thread =
      is_written_ ? kSumsKept : 1 + (kElementsPerThread - 1) / std::max<std::int64_t>(1, tile_size);
  const bool along_rows = is_written_ && adds_sums_;
  double total = 0.0;
  std::array<double, kSumsKept> sums;
  for (std::int64_t top = unit.row_begin; top < unit.row_end; top += strip) {
    const std::int64_t bottom = std::min(unit.row_end, top + strip);
    for (std::int64_t first = 0; first < blocks; first += together) {
      const std::int64_t across = std::min(blocks, first + together) - first;
      const std::int64_t down = (bottom - top + kHeight - 1) / kHeight;
      std::array<FlipCounts, kSumsKept / kHeight> results;
      const auto step = [&](std::int64_t nth, Scratch& scratch) {
        const std::int64_t nth_block = along_rows ? nth % across : nth / down;
        const std::int64_t row = top + (along_rows ? nth / across : nth % down) * kHeight;
        const std::int64_t row_end = std::min(bottom, row + kHeight);
        const std::int64_t col = (first + nth_block) * kBlock;
        update_chunk({row, row_end, col, std::min(cols, col + kBlock), unit.slot}, factor,
                     sums.data() + (row - top) * across + nth_block * (row_end - row), scratch,
                     results[static_cast<std::size_t>(nth)]);
      };
      parallel_ranges(down * across, tiles_a_thread, [&](std::int64_t begin, std::int64_t end) {
        Scratch scratch;
        for (std::int64_t nth = begin; nth < end; ++nth) step(nth, scratch);
      });
      for (std::int64_t nth = 0; nth < down * across; ++nth) {
        flips += results[static_cast<std::size_t>(nth)];
      }
      if (!measures_) continue;
      total = std::accumulate(sums.data(), sums.data() + (bottom - top) * across, total);
    }
  }
  return total;
}

void ParameterUpdate::update_chunk(const Chunk& chunk, float factor, double* squares,
                                   Scratch& scratch, FlipCounts& flips) {
  if (trained_.carries && !is_watched_) return carry_errors(chunk, flips);
  if (is_written_) return move_by_rule(chunk, scratch, flips);
  double* wanted = measures_ ? squares : nullptr;
  in_tiles_ ? move_tile_by_gradient(chunk, factor, wanted, flips)
            : move_by_gradient(chunk, factor, wanted, flips);
}

// The blocks of a row are updated together; the last one of a row may be shorter, and is alone.
void ParameterUpdate::move_by_gradient(const Chunk& chunk, float factor, double* squares,
                                       FlipCounts& flips) {
  alignas(kAlignment) std::array<float, kGradientChunk> numbers;
  std::array<Direction, kMostBlocksAtOnce> directions;
  const bool signs = !measures_;
  const float* grad = read_gradient(chunk, numbers.data());
  for (std::int64_t row = chunk.row_begin; row < chunk.row_end; ++row) {
    std::int64_t count = 0;
    for (std::int64_t col = chunk.col_begin; col < chunk.col_end; col += count * kBlock) {
      const std::int64_t n = std::min(kBlock, chunk.col_end - col);
      count = std::clamp<std::int64_t>((chunk.col_end - col) / kBlock, 1, kMostBlocksAtOnce);
      const auto of_blocks = std::span(directions).first(static_cast<std::size_t>(count));
      for (Direction& direction : of_blocks) direction = {grad, factor, signs}, grad += n;
      move_blocks({{row, col, n, chunk.slot}, BlockSeries::Way::kRight}, of_blocks, squares, flips);
      if (squares != nullptr) squares += count;
    }
  }
}

// squares[r] belongs to row r of the tile.
void ParameterUpdate::move_tile_by_gradient(const Chunk& tile, float factor, double* squares,
                                            FlipCounts& flips) {
  static_assert(LazyGradient::kRows <= kMostBlocksAtOnce);
  const std::int64_t count = tile.rows(), n = tile.cols();
  const BlockSeries series{{tile.row_begin, tile.col_begin, n, tile.slot}, BlockSeries::Way::kDown};
  std::array<Direction, LazyGradient::kRows> directions;
  const auto of_rows = std::span(directions).first(static_cast<std::size_t>(count));
  const bool signs = !measures_;
  if (lazy_->read_sums == nullptr || limits_gradient()) {
    alignas(kAlignment) std::array<float, LazyGradient::kRows * kBlock> numbers;
    const float* grad = read_gradient(tile, numbers.data());
    for (Direction& direction : of_rows) direction = {grad, factor, signs}, grad += n;
    return move_blocks(series, of_rows, squares, flips);
  }
  alignas(kAlignment) std::array<std::int32_t, LazyGradient::kRows * kBlock> sums;
  const SumRows rows = lazy_->read_sums(lazy_->context, tile.row_begin, tile.row_end,
                                        tile.col_begin, tile.col_end, sums.data(), memory_of(tile));
  for (std::int64_t r = 0; r < count; ++r) {
    const float row_factor = rows.factors[r];
    // A whole number times a factor that is not 0 is 0 only if it is.
    const auto sign = static_cast<float>((row_factor > 0.0f) - (row_factor < 0.0f));
    of_rows[static_cast<std::size_t>(r)] = {sums.data() + r * kBlock, rows.corrections[r],
                                            signs ? sign * factor : row_factor * factor, signs};
  }
  move_blocks(series, of_rows, squares, flips);
  if (squares == nullptr) return;
  for (std::int64_t r = 0; r < count; ++r) {
    const double row_factor = rows.factors[r];
    squares[r] = row_factor * row_factor * squares[r];
  }
}

void ParameterUpdate::move_blocks(const BlockSeries& series, std::span<const Direction> directions,
                                  double* squares, FlipCounts& flips) {
  if (is_watched_) {
    std::array<float, kBlock> numbers;
    for (std::size_t i = 0; i < directions.size(); ++i) {
      const Block block = series[i];
      trained_.watch.before_update(storage_, block,
                                   as_floats(directions[i], block.n, numbers.data()));
    }
  }
  flips += storage_.descend({series, directions, descent_, squares});
}

// The elements of a part must be neighbours, one row or whole rows, if weight or moments are used
// as they lie, in fp32.
void ParameterUpdate::move_by_rule(const Chunk& chunk, Scratch& scratch, FlipCounts& flips) {
  alignas(kAlignment) std::array<float, LazyGradient::kRows * kBlock> tile;
  std::int64_t together = chunk.rows();
  if (in_tiles_) {
    together = in_place_ ? 1 : kRuleChunk / kBlock;
    lazy_->read(lazy_->context, chunk.row_begin, chunk.row_end, chunk.col_begin, chunk.col_end,
                tile.data(), memory_of(chunk));
  } else if (trained_.fused) {
    together = trained_.fused->rows_together(chunk.rows());
  }
  for (std::int64_t row = chunk.row_begin; row < chunk.row_end; row += together) {
    Chunk part{row, std::min(chunk.row_end, row + together), chunk.col_begin, chunk.col_end,
               chunk.slot};
    const float* grad = nullptr;
    if (in_tiles_) {
      grad = limit_gradient(tile.data() + (row - chunk.row_begin) * chunk.cols(), part.size(),
                            scratch.grad.data());
    } else {
      part = move_fused(part, scratch);
      if (part.size() == 0) continue;
      grad = read_gradient(part, scratch.grad.data());
    }
    const RuleBlock block = read_chunk(part, grad, scratch);
    trained_.rule->direct(block);
    if (is_watched_) {
      for_each_block_of(part, kBlock, [&](const Block& b, std::int64_t offset) {
        trained_.watch.before_update(storage_, b, block.direction + offset);
      });
    }
    flips += descend(part, block, scratch);
    store_moments(part, scratch);
  }
}

void ParameterUpdate::carry_errors(const Chunk& chunk, FlipCounts& flips) {
  alignas(kAlignment) std::array<float, LazyGradient::kRows * kBlock> numbers;
  static_assert(numbers.size() >= kRuleChunk);
  const float* grad = read_gradient(chunk, numbers.data());
  for_each_block_of(chunk, kBlock, [&](const Block& block, std::int64_t offset) {
    flips += trained_.carries->update(block, grad + offset, eco_, descent_);
  });
}

// The elements of a row that are left over at its end are no obstacle.
Chunk ParameterUpdate::move_fused(const Chunk& chunk, Scratch& scratch) const {
  if (!trained_.fused || is_watched_) return chunk;
  const bool one_row = chunk.rows() == 1;
  const std::int64_t n = one_row ? chunk.size() / kFlashStep * kFlashStep : chunk.size();
  auto at = trained_.fused->at(chunk);
  if (!at || n == 0 || n % kFlashStep != 0) return chunk;
  const bool is_bf16 = !parameter_.grad && lazy_ == nullptr;
  if (is_bf16 && !limits_gradient()) {
    const std::int64_t first = chunk.row_begin * parameter_.shape().cols() + chunk.col_begin;
    at->bf16_grad = parameter_.bf16_gradient() + first;
  } else {
    at->grad = read_gradient(chunk, scratch.grad.data());
  }
  Chunk rest = chunk;
  if (trained_.fused->update(*at, descent_.lr, n)) {
    rest.col_begin = one_row ? chunk.col_begin + n : chunk.col_end;
  }
  return rest;
}

// The product that makes a gradient takes long enough for what it is added to to arrive. Of chunks
// of several blocks in a row, that is the memory of the first one.
PrefetchList ParameterUpdate::memory_of(const Chunk& chunk) const {
  const MatrixPiece tile{chunk.row_begin, chunk.row_end, chunk.col_begin};
  PrefetchList memory = storage_.memory_of(tile, Reading::kMaster);
  for (const Storage& moment : trained_.moments) {
    memory.add(moment.memory_of(tile, Reading::kMaster));
  }
  return memory;
}

bool ParameterUpdate::limits_gradient() const {
  return gradient_scale_ != 1.0f || trained_.group.clip_value != 0.0;
}

const float* ParameterUpdate::limit_gradient(const float* grad, std::int64_t n,
                                             float* scratch) const {
  if (!limits_gradient()) return grad;
  const float limit = static_cast<float>(trained_.group.clip_value);
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = gradient_scale_ * grad[i];
    scratch[i] = limit > 0.0f ? std::clamp(g, -limit, limit) : g;
  }
  return scratch;
}

const float* ParameterUpdate::read_gradient(const Chunk& chunk, float* scratch) const {
  if (lazy_ != nullptr) {
    lazy_->read(lazy_->context, chunk.row_begin, chunk.row_end, chunk.col_begin, chunk.col_end,
                scratch, memory_of(chunk));
    return limit_gradient(scratch, chunk.size(), scratch);
  }
  const std::int64_t first = chunk.row_begin * parameter_.shape().cols() + chunk.col_begin;
  return limit_gradient(parameter_.read_gradient(first, chunk.size(), scratch), chunk.size(),
                        scratch);
}

bool ParameterUpdate::decodes_master() const {
  const Rule::WeightReading reading = trained_.rule->weight_reading();
  return storage_.fp32_data() == nullptr &&
         (reading == Rule::WeightReading::kMaster ||
          // All rows by encoding, instead of descend() for each of their blocks of one element.
          (reading == Rule::WeightReading::kNone && trained_.group.eco == EcoForm::kOff &&
           storage_.spec().joins_rows(storage_.shape().cols())));
}

// Weights and moments that are not in fp32 are decoded. Moments of a parameter have its shape, so a
// block of one is a block of the other.
RuleBlock ParameterUpdate::read_chunk(const Chunk& chunk, const float* grad,
                                      Scratch& scratch) const {
  const std::int64_t first = chunk.row_begin * storage_.shape().cols() + chunk.col_begin;
  const bool asks_for_gain =
      trained_.group.eco != EcoForm::kOff && !trained_.rule->eco_terms(1).gain_is_one;
  RuleBlock block{first,
                  chunk.size(),
                  grad,
                  scratch.weight.data(),
                  {},
                  scratch.direction.data(),
                  asks_for_gain ? scratch.gain.data() : nullptr};
  if (const float* values = storage_.fp32_data()) {
    block.weight = values + first;
  } else if (decodes_master()) {
    decode_masters(storage_, chunk, scratch.weight.data());
  } else if (trained_.rule->weight_reading() == Rule::WeightReading::kValue) {
    for_each_block_of(chunk, kBlock, [&](const Block& b, std::int64_t offset) {
      storage_.decode_value(b, scratch.weight.data() + offset);
    });
  }
  for (std::size_t i = 0; i < trained_.moments.size(); ++i) {
    const Storage& moment = trained_.moments[i];
    float* stored = moment.fp32_data();
    float* decoded = scratch.moments[i].data();
    block.moments[i] = stored == nullptr ? decoded : stored + first;
    if (stored == nullptr) decode_masters(moment, chunk, decoded);
  }
  return block;
}

// Asks for what the rule will read some chunks later: fp32 numbers where they lie, in vain but
// cheaply where they do not. The rule would ask for all of it at once, while memory idles during
// decoding and encoding.
void ParameterUpdate::prefetch_ahead(const RuleBlock& block, std::int64_t offset,
                                     std::int64_t n) const {
  const std::int64_t first = offset + std::max(2 * kRuleChunk, block.n);
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(float));
  prefetch(block.grad + first, kBytes * n);
  for (std::size_t i = 0; i < trained_.moments.size(); ++i) {
    prefetch(block.moments[i] + first, kBytes * n);
  }
}

FlipCounts ParameterUpdate::descend(const Chunk& chunk, const RuleBlock& block, Scratch& scratch) {
  FlipCounts flips;
  if (trained_.group.eco != EcoForm::kOff) {
    for_each_block_of(chunk, kBlock, [&](const Block& b, std::int64_t offset) {
      const float* gain = block.gain == nullptr ? nullptr : block.gain + offset;
      const ErrorFeedback feedback{block.moments[0] + offset, gain, eco_.alpha, eco_.rescale};
      const Direction direction = block.direction + offset;
      flips += storage_.descend({{b}, {&direction, 1}, descent_, nullptr, &feedback});
    });
  } else if (float* values = storage_.fp32_data()) {
    // One call for the chunk: a call for each block costs a tenth of what memory allows.
    kernels().updates.descend(values + block.first, block.direction, descent_.lr, block.n);
  } else if (decodes_master() && storage_.spec().traits().descends_by_encoding) {
    kernels().updates.descend(scratch.weight.data(), block.direction, descent_.lr, block.n);
    const auto encode = [&](const Block& b, std::int64_t offset) {
      prefetch_ahead(block, offset, b.n);
      storage_.encode(b, scratch.weight.data() + offset, descent_.key);
    };
    // No longer blocks than must be: prefetches are then spread over the chunk.
    storage_.spec().joins_rows(storage_.shape().cols()) ? for_each_block_of(chunk, storage_, encode)
                                                        : for_each_block_of(chunk, kBlock, encode);
  } else {
    for_each_block_of(chunk, kBlock, [&](const Block& b, std::int64_t offset) {
      const Direction direction = block.direction + offset;
      prefetch_ahead(block, offset, b.n);
      const float* masters = decodes_master() ? scratch.weight.data() + offset : nullptr;
      flips += storage_.descend({{b}, {&direction, 1}, descent_, nullptr, nullptr, masters});
    });
  }
  return flips;
}

void ParameterUpdate::store_moments(const Chunk& chunk, Scratch& scratch) {
  for (std::size_t i = 0; i < trained_.moments.size(); ++i) {
    Storage& moment = trained_.moments[i];
    if (moment.fp32_data() != nullptr) continue;
    const RandomKey key = moment_key(descent_.key, i);
    for_each_block_of(chunk, moment, [&](const Block& b, std::int64_t offset) {
      moment.encode(b, scratch.moments[i].data() + offset, key);
    });
  }
}

}  // namespace tritgrad
