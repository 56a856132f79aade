// How the trits of a storage lie in memory, for products that read them as they lie
// (ops/products/trit_panels.h). Formats tell; they know nothing of panels.
#pragma once

#include <cstdint>

#include "engine/memory/column_blocks.h"

namespace tritgrad {

struct TritLayout {
  enum class Kind {
    kNone,         // the format holds no trits
    kFiveToAByte,  // engine/formats/packed_trits.h
    kCodeAByte,    // latent codes of one byte, engine/formats/latent8.h
    kPackedCodes,  // latent codes of 4 to 6 bits, engine/formats/packed_codes.h
  };

  Kind kind = Kind::kNone;
  const std::byte* bytes = nullptr;  // element (0, 0) lies here
  std::int64_t cols = 0;
  std::int64_t row_bytes = 0;  // kFiveToAByte: the distance of two rows
  ColumnBlocks order{};        // kCodeAByte
  // The trit of a code c is (c > threshold) - (c < -threshold).
  int threshold = 0;
  int bits = 0, max_code = 0;  // kPackedCodes
};

}  // namespace tritgrad
