// What the update of a run may rely on where formats keep element after element, without anything
// that depends on where a block ends.
#pragma once

#include "engine/format.h"

namespace tritgrad {

// decode_master() and encode() also take blocks of more than kBlock elements of one row, with the
// result of its blocks one by one.
constexpr bool takes_long_blocks(const FormatSpec& spec) {
  switch (spec.kind) {
    case FormatKind::kSplit32:
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

// descend() is descend_master() (engine/descend.h): who has the master already may save decoding it
// again.
constexpr bool descends_by_encoding(FormatKind kind) {
  switch (kind) {
    case FormatKind::kBf16:
    case FormatKind::kSplit24:
    case FormatKind::kSplit32:
    case FormatKind::kCompanded8:
    case FormatKind::kRoot8:
      return true;
    default:
      return false;
  }
}

}  // namespace tritgrad
