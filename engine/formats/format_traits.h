// The formats by name, and what is fixed about each. Its class says it, as F::kTraits.
#pragma once

#include <string_view>

namespace tritgrad {

enum class FormatKind {
  kFp32,           // 4 B: value = master = fp32
  kBf16,           // 2 B: value = master = bf16, updates rounded to nearest or stochastically
  kTernary,        // 1.2 B: packed trits, int8 accumulators beside them
  kLatent8,        // 1 B: trit and accumulator in one byte
  kTernaryMaster,  // 4 B: fp32 master, value = absmean ternary of it (BitNet b1.58)
  kScale16,        // 4 B: fp32 master, value = nearest positive fp16
  kTrits,          // 0.2 B: packed trits alone, value = master = trit
  kSplit24,        // 3 B: value = bf16, master = bf16 + int8 correction
  kSplit32,        // 4 B: value = bf16, master = bf16 + int16 correction
  kCompanded8,     // 1.0625 B: groups of 32 signed codes, finer towards zero, under a scale
  kRoot8,          // 1.0625 B: the same for numbers >= 0, codes of square roots
  kLatent6,        // 0.75 B: trit and accumulator in 6 bits
  kLatent5,        // 0.625 B: the same in 5 bits
  kLatent4,        // 0.5 B: the same in 4 bits
  kInt8,           // 1.06 B: int8 codes, a bf16 scale for every 32
  kInt4,           // 0.56 B: the same with 4 bits
  kFp8,            // 1.006 B: e4m3, a bf16 scale for every block
  kScalar,         // 0 B: moments only, one mean for the tensor
  kFactored,       // 0 B: moments only, row means and column means
  kShared4,        // 0.45 B: packed trits, one accumulator of a byte for every 4
  kShared8,        // 0.325 B: the same for every 8
  kShared16,       // 0.2625 B: the same for every 16
  kFp8Master,      // 4 B: fp32 master, value = fp8 of it
  kInt4Master,     // 4 B: fp32 master, value = int4 of it
};
inline constexpr int kFormatCount = 24;

// Whether the verbs of a block also take longer ones. A format can that keeps element after element
// and nothing that depends on where a block ends.
enum class LongBlocks {
  kNever,
  kToNearest,  // if updates round to nearest: the noise of a block is drawn into an array of its
               // size
  kAlways,
};

struct FormatTraits {
  FormatKind kind;
  const char* name;
  // The value is a bare trit and wants a trained scale parameter beside it.
  bool holds_trits = false;
  // The value is -s, 0 or s.
  bool is_ternary = holds_trits;
  // Formats for weights and scales that have one keep what an update could not express in a master
  // that is more than the value, or, in fp32, have nothing to keep.
  bool has_residual = true;
  // Updates are rounded as FormatSpec::rounding says; else the master is as fine as fp32, and
  // rounds to nearest.
  bool rounds_updates = true;
  // The fixed-point formats count a trit in so many levels; 0 for others, and for ternary, whose
  // FlipPolicy tells.
  int levels_per_trit = 0;
  // The bound of FlipPolicy::hysteresis: half the levels of a trit, as a push of more would go past
  // the next flip. 0 for formats without, and for ternary, whose FlipPolicy says it all.
  int highest_hysteresis = 0;
  // decode_master() and encode() also take blocks of more than kBlock elements of one row, with the
  // result of its blocks one by one.
  LongBlocks long_blocks = LongBlocks::kNever;
  // If those are taken and there is one column, blocks may also go down the rows, which are
  // neighbours in memory: nothing that is kept of an element depends on its block. This holds for
  // decode_value(), decode_master() and encode(). Scales of rows are such matrices; these are the
  // formats that recipes give to them and to their moments.
  bool joins_rows = false;
  // descend() has the result of descend_master() (engine/formats/descend.h): who has the master
  // already may save decoding it again.
  bool descends_by_encoding = false;
  // descend() takes a whole BlockUpdate and reads its directions as they lie. The others take the
  // floats of one block.
  bool reads_directions = false;
  // descend() feeds rounding errors back by itself. For the others without a residual,
  // descend_with_feedback() (engine/formats/descend.h) does it.
  bool carries_errors = false;
  // The format keeps statistics of the whole tensor, which refresh() renews after each pass.
  bool has_statistics = false;
  // The format tells by memory_of() where the elements of a piece lie. Others are not read in
  // pieces often, and leave prefetching to the processor.
  bool tells_memory = false;
};

const FormatTraits& format_traits(FormatKind kind);
// Throws Error for an unknown name, with the nearest known one.
FormatKind parse_format(std::string_view name);
inline std::string_view format_name(FormatKind kind) { return format_traits(kind).name; }

}  // namespace tritgrad
