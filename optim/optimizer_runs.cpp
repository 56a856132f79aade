// How the elements of one parameter are moved: decode, rule, encode, a run at a time.
#include <algorithm>
#include <array>
#include <cmath>

#include "engine/kernels/updates.h"
#include "optim/optimizer.h"
#include "optim/rules/microadam.h"

namespace tritgrad {
namespace {

constexpr std::int64_t kMaxRun = Microadam::kElements;
static_assert(kRun <= kMostFlashElements, "or no run would be updated at once");

// Calls body(block, offset in the run) for the run's blocks, of `longest` elements at most.
template <typename Run, typename Body>
void for_each_block_of(const Run& run, std::int64_t longest, Body&& body) {
  std::int64_t offset = 0;
  for (std::int64_t row = run.row_begin; row < run.row_end; ++row) {
    for (std::int64_t col = run.col_begin; col < run.col_end; col += longest) {
      const Block block{row, col, std::min(longest, run.col_end - col), run.slot};
      body(block, offset);
      offset += block.n;
    }
  }
}

// The same with blocks as long as the storage takes them.
template <typename Run, typename Body>
void for_each_block_of(const Run& run, const Storage& storage, Body&& body) {
  if (storage.spec().joins_rows(storage.shape().cols())) {
    return body(Block{run.row_begin, 0, run.size(), run.slot}, std::int64_t{0});
  }
  for_each_block_of(run, storage.spec().takes_long_blocks() ? kMaxRun : kBlock, body);
}

template <typename Run>
void decode_masters(const Storage& storage, const Run& run, float* out) {
  for_each_block_of(run, storage, [&](const Block& block, std::int64_t offset) {
    storage.decode_master(block, out + offset);
  });
}

}  // namespace

struct Optimizer::RunScratch {
  // A power of two between them would make loads from one wait for stores to the others.
  using Numbers = std::array<float, kMaxRun + 5 * kAlignment / sizeof(float)>;
  alignas(kAlignment) Numbers grad, weight, direction, gain;
  alignas(kAlignment) std::array<Numbers, kMaxMoments> moments;
};

// The product that makes a gradient takes long enough for what it is added to to arrive. Of runs of
// several blocks, the first one's.
PrefetchList Optimizer::memory_of(const State& state, const Run& run) {
  const Tile tile{run.row_begin, run.row_end, run.col_begin};
  PrefetchList memory = state.parameter->storage().memory_of(tile, Reading::kMaster);
  for (const Storage& moment : state.moments) memory.add(moment.memory_of(tile, Reading::kMaster));
  return memory;
}

const float* Optimizer::read_gradient(const State& state, const Run& run, float* scratch) const {
  const Parameter& parameter = *state.parameter;
  const std::int64_t first = run.row_begin * parameter.shape().cols() + run.col_begin;
  if (const LazyGradient* source = parameter.gradient_source) {
    source->read(source->context, run.row_begin, run.row_end, run.col_begin, run.col_end, scratch,
                 memory_of(state, run));
    return limit_gradient(state, scratch, run.size(), scratch);
  }
  return limit_gradient(state, parameter.read_gradient(first, run.size(), scratch), run.size(),
                        scratch);
}

const float* Optimizer::limit_gradient(const State& state, const float* grad, std::int64_t n,
                                       float* scratch) const {
  if (!limits_gradient(state)) return grad;
  const float limit = static_cast<float>(state.group.clip_value);
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = gradient_scale_ * grad[i];
    scratch[i] = limit > 0.0f ? std::clamp(g, -limit, limit) : g;
  }
  return scratch;
}

void Optimizer::step_rows(State& state, const Update& update, const Unit& unit, FlipCounts& flips) {
  RunScratch scratch;
  const auto step = [&](const Run& whole) {
    const Run run = step_at_once(state, update, whole, scratch);
    if (run.size() == 0) return;
    step_run(state, update, run, read_gradient(state, run, scratch.grad.data()), scratch, flips);
  };
  state.runs.for_each(
      unit.row_begin, unit.row_end,
      [&](std::int64_t row_begin, std::int64_t row_end, std::int64_t col_begin,
          std::int64_t col_end) {
        const std::int64_t count = row_end - row_begin;
        const std::int64_t together = state.flash ? state.flash->rows_together(count) : count;
        for (std::int64_t row = row_begin; row < row_end; row += together) {
          step({row, std::min(row_end, row + together), col_begin, col_end, unit.slot});
        }
      });
}

// A gradient that is computed when read comes in tiles that stay in the cache. Only for rules that
// look at every element alone and do not mind how a parameter is cut.
void Optimizer::step_tiles(State& state, const Update& update, const Unit& unit,
                           FlipCounts& flips) {
  const LazyGradient& source = *state.parameter->gradient_source;
  const std::int64_t cols = state.parameter->shape().cols();
  // What is in fp32 is used where it lies, and rows of a tile lie apart.
  const bool in_place = state.parameter->storage().fp32_data() != nullptr ||
                        std::any_of(state.moments.begin(), state.moments.end(),
                                    [](Storage& m) { return m.fp32_data() != nullptr; });
  const std::int64_t together = in_place ? 1 : kRun / kBlock;
  RunScratch scratch;
  alignas(kAlignment) std::array<float, LazyGradient::kRows * kBlock> tile;
  const auto step = [&](std::int64_t top, std::int64_t left) {
    const std::int64_t bottom = std::min(unit.row_end, top + LazyGradient::kRows);
    const std::int64_t right = std::min(cols, left + kBlock);
    source.read(source.context, top, bottom, left, right, tile.data(),
                memory_of(state, {top, bottom, left, right, unit.slot}));
    for (std::int64_t row = top; row < bottom; row += together) {
      const float* grad = tile.data() + (row - top) * (right - left);
      const Run run{row, std::min(bottom, row + together), left, right, unit.slot};
      step_run(state, update, run, limit_gradient(state, grad, run.size(), scratch.grad.data()),
               scratch, flips);
    }
  };
  // Tiles of the same columns after each other share an operand of the product that makes the
  // gradient; but a moment that is a sum is added up along the rows.
  const bool sums = std::any_of(state.moments.begin(), state.moments.end(),
                                [](Storage& m) { return m.spec().kind == FormatKind::kScalar; });
  const std::int64_t width = sums ? cols : kBlock;
  for (std::int64_t first = 0; first < cols; first += width) {
    for (std::int64_t top = unit.row_begin; top < unit.row_end; top += LazyGradient::kRows) {
      for (std::int64_t left = first; left < std::min(cols, first + width); left += kBlock) {
        step(top, left);
      }
    }
  }
}

// What is not in fp32 is decoded. Moments of a parameter share its shape, so a block of one is a
// block of the other.
RuleBlock Optimizer::read_run(State& state, const Run& run, const float* grad,
                              RunScratch& scratch) {
  Storage& storage = state.parameter->storage();
  const std::int64_t first = run.row_begin * storage.shape().cols() + run.col_begin;
  const bool asks_for_gain =
      state.group.eco != EcoForm::kOff && !state.rule->eco_terms(1).gain_is_one;
  RuleBlock block{first,
                  run.size(),
                  grad,
                  scratch.weight.data(),
                  {},
                  scratch.direction.data(),
                  asks_for_gain ? scratch.gain.data() : nullptr};
  if (const float* values = storage.fp32_data()) {
    block.weight = values + first;
  } else if (decodes_master(state)) {
    decode_masters(storage, run, scratch.weight.data());
  } else if (state.rule->weight_reading() == Rule::WeightReading::kValue) {
    for_each_block_of(run, kBlock, [&](const Block& b, std::int64_t offset) {
      storage.decode_value(b, scratch.weight.data() + offset);
    });
  }
  for (std::size_t i = 0; i < state.moments.size(); ++i) {
    Storage& moment = state.moments[i];
    float* stored = moment.fp32_data();
    float* decoded = scratch.moments[i].data();
    block.moments[i] = stored == nullptr ? decoded : stored + first;
    if (stored == nullptr) decode_masters(moment, run, decoded);
  }
  return block;
}

bool Optimizer::decodes_master(const State& state) {
  const Storage& storage = state.parameter->storage();
  const Rule::WeightReading reading = state.rule->weight_reading();
  return storage.fp32_data() == nullptr &&
         (reading == Rule::WeightReading::kMaster ||
          // All rows by encoding, instead of descend() for each of their blocks of one element.
          (reading == Rule::WeightReading::kNone && state.group.eco == EcoForm::kOff &&
           storage.spec().joins_rows(storage.shape().cols())));
}

// The elements of a row that are left over at its end are no obstacle.
Optimizer::Run Optimizer::step_at_once(const State& state, const Update& update, const Run& run,
                                       RunScratch& scratch) const {
  if (!state.flash || update.watch) return run;
  const bool one_row = run.row_end - run.row_begin == 1;
  const std::int64_t n = one_row ? run.size() / kFlashStep * kFlashStep : run.size();
  auto at = state.flash->at(run.row_begin, run.row_end, run.col_begin, run.col_end);
  if (!at || n == 0 || n % kFlashStep != 0) return run;
  const Parameter& parameter = *state.parameter;
  const bool is_bf16 = !parameter.grad && parameter.gradient_source == nullptr;
  if (is_bf16 && !limits_gradient(state)) {
    const std::int64_t first = run.row_begin * parameter.shape().cols() + run.col_begin;
    at->bf16_grad = parameter.bf16_gradient() + first;
  } else {
    at->grad = read_gradient(state, run, scratch.grad.data());
  }
  Run rest = run;
  if (state.rule->update_at_once(*at, update.descent.lr, n)) {
    rest.col_begin = one_row ? run.col_begin + n : run.col_end;
  }
  return rest;
}

// Where values or moments are used as they lie, in fp32, the elements must be neighbours: one row,
// or whole rows.
void Optimizer::step_run(State& state, const Update& update, const Run& run, const float* grad,
                         RunScratch& scratch, FlipCounts& flips) {
  const RuleBlock block = read_run(state, run, grad, scratch);
  state.rule->direct(block);
  if (update.watch) {
    for_each_block_of(run, kBlock, [&](const Block& b, std::int64_t offset) {
      state.watch.before_update(state.parameter->storage(), b, block.direction + offset);
    });
  }
  flips += descend_run(state, update, run, block, scratch);
  for (std::size_t i = 0; i < state.moments.size(); ++i) {
    Storage& moment = state.moments[i];
    if (moment.fp32_data() != nullptr) continue;
    // Every plane has noise of its own: shared noise would correlate its rounding errors.
    RandomKey key = update.descent.key;
    key.stream += static_cast<std::uint32_t>(i + 1) * 0x9E3779B9u;
    for_each_block_of(run, moment, [&](const Block& b, std::int64_t offset) {
      moment.encode(b, scratch.moments[i].data() + offset, key);
    });
  }
}

FlipCounts Optimizer::descend_run(State& state, const Update& update, const Run& run,
                                  const RuleBlock& block, RunScratch& scratch) {
  Storage& storage = state.parameter->storage();
  FlipCounts flips;
  if (state.group.eco != EcoForm::kOff) {
    for_each_block_of(run, kBlock, [&](const Block& b, std::int64_t offset) {
      const float* gain = block.gain == nullptr ? nullptr : block.gain + offset;
      const ErrorCarrier carrier{block.moments[0] + offset, gain, update.eco.alpha,
                                 update.eco.rescale};
      const Direction direction = block.direction + offset;
      flips += storage.descend({{b}, {&direction, 1}, update.descent, nullptr, &carrier});
    });
  } else if (float* values = storage.fp32_data()) {
    // One call for the run: a call for each block costs a tenth of what memory allows.
    kernels().updates.descend(values + block.first, block.direction, update.descent.lr, block.n);
  } else if (decodes_master(state) && storage.spec().traits().descends_by_encoding) {
    kernels().updates.descend(scratch.weight.data(), block.direction, update.descent.lr, block.n);
    for_each_block_of(run, storage, [&](const Block& b, std::int64_t offset) {
      storage.encode(b, scratch.weight.data() + offset, update.descent.key);
    });
  } else {
    for_each_block_of(run, kBlock, [&](const Block& b, std::int64_t offset) {
      const Direction direction = block.direction + offset;
      flips += storage.descend({{b}, {&direction, 1}, update.descent});
    });
  }
  return flips;
}

}  // namespace tritgrad
