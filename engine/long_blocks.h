// What updates and readings may rely on where formats keep element after element, without anything
// that depends on where a block ends.
#pragma once

#include "engine/format.h"

namespace tritgrad {

// decode_master() and encode() also take blocks of more than kBlock elements of one row, with the
// result of its blocks one by one.
constexpr bool takes_long_blocks(const FormatSpec& spec) {
  switch (spec.kind) {
    case FormatKind::kSplit32:
    case FormatKind::kScale16:
      return true;
    case FormatKind::kBf16:
    case FormatKind::kSplit24:
    case FormatKind::kCompanded8:
    case FormatKind::kRoot8:
      // The noise of a block is drawn into an array of its size.
      return spec.rounding == Rounding::kNearest;
    default:
      return false;
  }
}

// Of one column, blocks may also go down the rows, which are neighbours in memory: nothing that is
// kept of an element depends on its block. With decode_value(), decode_master() and encode(), of
// formats that descends_by_encoding(). Scales of rows are such matrices; these are the formats that
// recipes give to them and to their moments.
constexpr bool joins_rows(const FormatSpec& spec, std::int64_t cols) {
  const bool alone = spec.kind == FormatKind::kScale16 || spec.kind == FormatKind::kBf16;
  return cols == 1 && alone && takes_long_blocks(spec);
}

// descend() has the result of descend_master() (engine/descend.h): who has the master already may
// save decoding it again.
constexpr bool descends_by_encoding(FormatKind kind) {
  switch (kind) {
    case FormatKind::kBf16:
    case FormatKind::kSplit24:
    case FormatKind::kSplit32:
    case FormatKind::kCompanded8:
    case FormatKind::kRoot8:
    case FormatKind::kScale16:
      return true;
    default:
      return false;
  }
}

}  // namespace tritgrad
