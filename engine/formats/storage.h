// The parameter-storage layer: one closed variant over all formats.
//
// A new format is one header in engine/formats/, its enumerator and one alternative here;
// HACKING.md names the few places that the compiler does not ask for.
#pragma once

#include <variant>

#include "engine/formats/bf16.h"
#include "engine/formats/companded8.h"
#include "engine/formats/factored.h"
#include "engine/formats/format.h"
#include "engine/formats/fp32.h"
#include "engine/formats/fp8.h"
#include "engine/formats/integer_group.h"
#include "engine/formats/latent8.h"
#include "engine/formats/latent_packed.h"
#include "engine/formats/root8.h"
#include "engine/formats/scalar.h"
#include "engine/formats/scale16.h"
#include "engine/formats/shared.h"
#include "engine/formats/split.h"
#include "engine/formats/ternary.h"
#include "engine/formats/ternary_master.h"
#include "engine/formats/trits.h"
#include "engine/memory/prefetch.h"

namespace tritgrad {

// In the order of FormatKind.
using AnyFormat = std::variant<Fp32, Bf16, Ternary, Latent8, TernaryMaster, Scale16, Trits, Split24,
                               Split32, Companded8, Root8, LatentPacked<6>, LatentPacked<5>,
                               LatentPacked<4>, IntegerGroup<8>, IntegerGroup<4>, Fp8, Scalar,
                               Factored, Shared<4>, Shared<8>, Shared<16>>;
static_assert(std::variant_size_v<AnyFormat> == kFormatCount);

// One block of each of rows [row_begin, row_end), all of them from column `col` (a multiple of
// kBlock) on.
struct Tile {
  std::int64_t row_begin, row_end, col;
};

// Nothing that visits the formats is inline: it would be compiled wherever it is called, with the
// flags of that file, and the linker takes any of the copies.
class Storage {
 public:
  // Allocates zeros (scale16: ones). `value_category` is where the ledger books what inference
  // reads.
  Storage(const FormatSpec& spec, const Shape& shape, Category value_category);

  // The planes that such a storage would have; allocates nothing.
  static std::vector<PlaneSpec> plane_specs(const FormatSpec& spec, const Shape& shape,
                                            Category value_category);

  const FormatSpec& spec() const { return spec_; }
  const Shape& shape() const { return shape_; }
  std::vector<Plane> planes() const;
  // Bytes of all planes, counted from the memory that is really held.
  std::int64_t bytes() const;

  void decode_value(const Block& block, float* out) const;
  void decode_master(const Block& block, float* out) const;
  // Whether values are bare trits, whose scale is a parameter of its own; then
  // decode_trits() gives the values as -1, 0, 1.
  bool holds_trits() const { return spec_.traits().holds_trits; }
  void decode_trits(const Block& block, std::int8_t* out) const;
  // The same for a tile, its rows kBlock apart.
  void decode_trits(const Tile& tile, std::int8_t* out) const;
  // Trits plus 1 as panels of an integer product (engine/kernels/products.h). pack_across: the
  // rows of the tile, kPanelColumns at most, are the columns of one panel. pack_down: its rows are
  // the depth of panels, ld_panels apart, of columns [first, last) of the matrix, which lie in the
  // tile's block; the columns of the last panel that are beyond them may be anything.
  void pack_across(const Tile& tile, std::uint8_t* panel) const;
  void pack_down(const Tile& tile, std::int64_t first, std::int64_t last, std::uint8_t* panels,
                 std::int64_t ld_panels) const;
  // The memory that the reading of a tile, or an update, will touch, for whoever has time to ask
  // for it. Rows and columns beyond the matrix have none; nor have formats whose tiles are not read
  // often, which leave it to the processor.
  PrefetchList memory_of(const Tile& tile, Reading reading) const;
  // sums[r - begin] = the sum of (trit + 1) x along row r, for rows [begin, end) of a format that
  // holds trits and x [cols] in +-127.
  void dot_rows(std::int64_t begin, std::int64_t end, const std::int8_t* x,
                std::int32_t* sums) const;
  void encode(const Block& block, const float* master, const RandomKey& key);
  FlipCounts descend(const Block& block, const Direction& direction, const Descent& descent);
  // descend() by plain numbers to the master nearest to what is wanted (or by chance, as encode()
  // rounds), with the difference handed to the carrier. For formats without a residual.
  FlipCounts descend_carrying(const Block& block, const float* direction, const Descent& descent,
                              const ErrorCarrier& carrier);
  // descend() of blocks, each by its direction; kMostBlocksAtOnce at most. With `squares`: as
  // DirectionRows has it, squares[i] of block i.
  FlipCounts descend_series(const BlockSeries& series, std::span<const Direction> directions,
                            const Descent& descent, double* squares = nullptr);
  // encode() of n elements whose sum this is, for a format that keeps nothing else of them.
  void add_sum(std::int64_t slot, double sum, std::int64_t n);

  // Ends a pass over all blocks (descend or encode): formats with whole-tensor statistics renew
  // them.
  void refresh();

  // The values as one fp32 array where they are stored as such, else nullptr.
  float* fp32_data() const;

  // Values of rows [row_begin, row_end) to out, densely.
  void decode_rows(std::int64_t row_begin, std::int64_t row_end, float* out) const;

 private:
  // The first block of a tile.
  Block first_block(const Tile& tile) const {
    return {tile.row_begin, tile.col, std::min(kBlock, shape_.cols() - tile.col), 0};
  }

  FormatSpec spec_;
  Shape shape_;
  AnyFormat format_;
};

// Number of zero values; 0 for formats that are not ternary.
std::int64_t count_zeros(const Storage& storage);

}  // namespace tritgrad
