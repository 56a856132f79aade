// The contract between number formats and everything else.
//
// A trained weight is a value, which the forward pass reads, and a residual, which the last update
// could not express in the value. A format says in which bytes the two live. It has two readings,
//
//     value                        what the layer multiplies with
//     master = value + residual    what an update moves
//
// and one way to change: descend, master -= lr * direction. Update rules (optim/rule.h) produce
// directions and know no format; formats apply them and know no rule.
//
// A format is a matrix of rows x cols elements. All verbs work on a Block: at most kBlock
// neighbouring elements of one row, beginning at a multiple of kBlock, so that a block is always
// whole bytes and may be processed by any thread (engine/formats/format_traits.h: some formats take
// longer ones, and of a single column some that go down the rows).
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/formats/dtype.h"
#include "engine/formats/flips.h"
#include "engine/formats/format_traits.h"
#include "engine/formats/update_noise.h"
#include "engine/kernels/direction.h"
#include "engine/memory/buffer.h"
#include "engine/memory/column_blocks.h"
#include "engine/random.h"
#include "engine/shape.h"

namespace tritgrad {

// 320 = 5 x 64: a block of packed trits is one cache line.
inline constexpr std::int64_t kBlock = 320;

// A pass over a tensor is cut into parts of whole rows, by its shape alone: at most kSlots, with no
// fewer rows each, but for the last one, than kElementsPerSlot elements fill.
inline constexpr std::int64_t kSlots = 64;
inline constexpr std::int64_t kElementsPerSlot = 32768;
// Return the rows that a part has at least, and the number of parts that a pass has at most.
inline std::int64_t least_rows_per_slot(const Shape& shape) {
  const std::int64_t in_elements = kElementsPerSlot / std::max<std::int64_t>(1, shape.cols());
  return std::max({std::int64_t{1}, in_elements, (shape.rows() + kSlots - 1) / kSlots});
}
inline std::int64_t most_slots(const Shape& shape) {
  const std::int64_t rows = least_rows_per_slot(shape);
  return std::max<std::int64_t>(1, (shape.rows() + rows - 1) / rows);
}

struct Block {
  std::int64_t row = 0;
  std::int64_t col = 0;  // a multiple of kBlock
  std::int64_t n =
      0;  // at most kBlock (engine/formats/format_traits.h: more); shorter only at a row's end
  std::int64_t slot = 0;  // the part of the pass: formats that keep sums have one for each, so that
                          // threads neither share them nor change their order
};

// Blocks of one length, each one below the one before, or each to the right of it.
struct BlockSeries {
  enum class Way { kDown, kRight };

  Block first;
  Way way = Way::kDown;

  Block operator[](std::size_t i) const {
    Block block = first;
    const auto steps = static_cast<std::int64_t>(i);
    way == Way::kDown ? block.row += steps : block.col += steps * kBlock;
    return block;
  }
};

// A format updates at most so many blocks in one call.
inline constexpr std::int64_t kMostBlocksAtOnce = 16;

// Which of the two readings of a format.
enum class Reading { kValue, kMaster };

enum class Rounding { kNearest, kStochastic };

struct FormatSpec {
  FormatKind kind = FormatKind::kFp32;
  // This rounds updates, and everything that is written where value and master are the same (bf16,
  // trits, int8, int4, fp8, moments) or in split24. Fp32 masters and split32 ignore it.
  Rounding rounding = Rounding::kStochastic;
  FlipPolicy flips;  // ternary; latents use its hysteresis alone
  int group = 0;     // inputs that share a scale: 0 = whole row, 32, 64, 128

  const FormatTraits& traits() const { return format_traits(kind); }
  // Return what FormatTraits::long_blocks and joins_rows say, with this rounding, of matrices of so
  // many columns.
  bool takes_long_blocks() const {
    const LongBlocks blocks = traits().long_blocks;
    return blocks == LongBlocks::kAlways ||
           (blocks == LongBlocks::kToNearest && rounding == Rounding::kNearest);
  }
  bool joins_rows(std::int64_t cols) const {
    return cols == 1 && traits().joins_rows && takes_long_blocks();
  }
  friend bool operator==(const FormatSpec&, const FormatSpec&) = default;
};

// One stretch of bytes that a format keeps. `inference` planes alone determine the value.
struct PlaneSpec {
  const char* name;
  Dtype dtype;
  std::int64_t count;
  Category category;
  bool inference;
  std::int64_t rows = 0;  // the plane's own, where they are not the parameter's

  std::int64_t bytes() const { return count * static_cast<std::int64_t>(dtype_bytes(dtype)); }
};

struct Plane {
  PlaneSpec spec;
  std::span<std::byte> bytes;
  ColumnBlocks order{};  // of the bytes; in files all planes lie row by row
};

// Bytes of a live parameter, optimizer or data set under the name that they have in a file.
struct NamedArray {
  std::string name;  // "PARAMETER/m/value"
  Dtype dtype;
  Shape shape;
  std::span<std::byte> bytes;
  ColumnBlocks order{};
};

// One update: master -= lr * direction. Its stochastic rounding depends on the key and the
// element alone; key.step counts the updates.
struct Descent {
  Descent(float lr_, const RandomKey& key_)
      : lr(lr_), key(key_), noise(update_noise_of_step(key.step)) {}

  float lr;
  RandomKey key;
  alignas(kAlignment) std::array<std::uint32_t, UpdateNoiseTable::kPlaces> noise;
};

// Error feedback: the momentum takes the rounding errors of an update, for formats that keep none
// (optim/eco.h):
//
//     momentum <- rescale (momentum + alpha (wanted - stored) / gain)
//
// of each element; no array overlaps another one.
struct ErrorFeedback {
  float* momentum;
  const float* gain;  // null: 1
  float alpha;
  float rescale;
};

// One update of up to kMostBlocksAtOnce blocks, each by its direction.
struct BlockUpdate {
  BlockSeries blocks;
  std::span<const Direction> directions;  // one for each block
  const Descent& descent;
  double* squares = nullptr;  // out, of each block, as DirectionRows has it; null: nobody asks
  // Takes the rounding errors of a single block; null: they are left to the format.
  const ErrorFeedback* feedback = nullptr;
  // The masters of a single block, if the caller has decoded them; null: it has not.
  const float* masters = nullptr;
};

// Every format provides these. `value_category` is where the ledger books the inference planes.
// F::kTraits says what a format does beyond that, and Storage holds it to its word.
template <typename F>
concept Format = std::movable<F> &&
    requires(F format, const F& readable, const FormatSpec& spec, const Shape& shape,
             const Block& block, float* out, const float* in, const RandomKey& key) {
  { F::kTraits } -> std::convertible_to<FormatTraits>;
  { F::plane_specs(spec, shape, Category::kWeights) } -> std::same_as<std::vector<PlaneSpec>>;
  F(spec, shape, Category::kWeights);
  { readable.planes() } -> std::same_as<std::vector<Plane>>;
  readable.decode_value(block, out);
  readable.decode_master(block, out);
  // Overwrites the block with the nearest master (stochastically rounded if the spec says so).
  format.encode(block, in, key);
};

// Calls body(block) for all blocks of rows [row_begin, row_end), in order.
template <typename Body>
void for_each_block(std::int64_t row_begin, std::int64_t row_end, std::int64_t cols, Body&& body) {
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    for (std::int64_t col = 0; col < cols; col += kBlock) {
      body(Block{row, col, std::min(kBlock, cols - col), 0});
    }
  }
}
template <typename Body>
void for_each_block(const Shape& shape, Body&& body) {
  for_each_block(0, shape.rows(), shape.cols(), body);
}

// Returns the number of a block in its matrix, row by row.
inline std::uint64_t block_number(const Block& block, std::int64_t cols) {
  const std::int64_t blocks_per_row = (cols + kBlock - 1) / kBlock;
  return static_cast<std::uint64_t>(block.row * blocks_per_row + block.col / kBlock);
}
// Returns the number of its first element, if rows are padded to whole blocks: a multiple of 8, at
// which random bits begin (CodecKernels::random_u16).
inline std::uint64_t noise_index(const Block& block, std::int64_t cols) {
  return block_number(block, cols) * static_cast<std::uint64_t>(kBlock);
}

}  // namespace tritgrad
