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
#include "engine/formats/rounded_master.h"
#include "engine/formats/scalar.h"
#include "engine/formats/scale16.h"
#include "engine/formats/shared.h"
#include "engine/formats/split.h"
#include "engine/formats/ternary.h"
#include "engine/formats/ternary_master.h"
#include "engine/formats/trit_layout.h"
#include "engine/formats/trits.h"
#include "engine/memory/prefetch.h"

namespace tritgrad {

// The formats, in the order of FormatKind.
using AnyFormat = std::variant<Fp32, Bf16, Ternary, Latent8, TernaryMaster, Scale16, Trits, Split24,
                               Split32, Companded8, Root8, LatentPacked<6>, LatentPacked<5>,
                               LatentPacked<4>, IntegerGroup<8>, IntegerGroup<4>, Fp8, Scalar,
                               Factored, Shared<4>, Shared<8>, Shared<16>, Fp8Master, Int4Master>;
static_assert(std::variant_size_v<AnyFormat> == kFormatCount);

// One block of each of rows [row_begin, row_end), all of them from column `col` (a multiple of
// kBlock) on.
struct MatrixPiece {
  std::int64_t row_begin, row_end, col;

  // Returns the first of its blocks, of a matrix with so many columns.
  Block first_block(std::int64_t cols) const {
    return {row_begin, col, std::min(kBlock, cols - col), 0};
  }
};

// Nothing that visits the formats is inline: it would be compiled wherever it is called, with the
// flags of that file, and the linker takes any of the copies.
class Storage {
 public:
  // Allocates zeros (scale16: ones). `value_category` is where the ledger books what inference
  // reads.
  Storage(const FormatSpec& spec, const Shape& shape, Category value_category);

  // Returns the planes that such a storage would have; allocates nothing.
  static std::vector<PlaneSpec> plane_specs(const FormatSpec& spec, const Shape& shape,
                                            Category value_category);

  const FormatSpec& spec() const { return spec_; }
  const Shape& shape() const { return shape_; }
  std::vector<Plane> planes() const;

  void decode_value(const Block& block, float* out) const;
  void decode_master(const Block& block, float* out) const;
  // Decodes the values of rows [row_begin, row_end) to out, densely.
  void decode_rows(std::int64_t row_begin, std::int64_t row_end, float* out) const;
  // Overwrites a block with the nearest masters, rounded as the spec says.
  void encode(const Block& block, const float* master, const RandomKey& key);
  // Updates blocks: master -= lr * direction. With error feedback, masters become those nearest
  // to what is wanted (or by chance, as encode() rounds), and the momentum takes the difference:
  // for formats without a residual. Throws Error for more than kMostBlocksAtOnce blocks.
  FlipCounts descend(const BlockUpdate& update);
  // Ends a pass over all blocks (descend or encode): formats with statistics of the whole tensor
  // renew them.
  void refresh();

  // Returns the values as one fp32 array where they are stored as such, else nullptr.
  float* fp32_data() const;
  // Returns the format `scalar`, which keeps nothing but sums of what is written, else nullptr.
  Scalar* scalar() { return std::get_if<Scalar>(&format_); }
  // Tells how bare trits lie; kind kNone for formats that hold none.
  TritLayout trit_layout() const;
  // Returns the memory that the reading of a piece, or an update, will touch, for whoever has time
  // to prefetch it. Rows and columns beyond the matrix have none; nor have formats that do not tell
  // (FormatTraits::tells_memory).
  PrefetchList memory_of(const MatrixPiece& piece, Reading reading) const;

 private:
  FormatSpec spec_;
  Shape shape_;
  AnyFormat format_;
};

// Returns the bytes of all planes, counted from the memory that is really held.
std::int64_t bytes_of(const Storage& storage);

// Returns the number of zero values; 0 for formats that are not ternary.
std::int64_t count_zeros(const Storage& storage);

}  // namespace tritgrad
