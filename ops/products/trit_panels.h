// The trits of a weight as operands of integer products, read as they lie (TritLayout).
//
// A panel is 64 columns of bytes, four neighbours of the inner dimension together
// (engine/kernels/products.h); trits go into it as trit + 1. Packed trits and latents of one byte
// are put into the order of a panel as they are stored and become trits last, as moving bytes about
// takes as long as decoding them and five trits are one byte. Pieces that do not suit these
// kernels, and packed codes, are decoded first.
#pragma once

#include <cstdint>

#include "engine/formats/storage.h"

namespace tritgrad {

// Decodes a block of a weight that holds trits: n numbers of -1, 0, 1.
void decode_trits(const Storage& weight, const Block& block, std::int8_t* out);
// Decodes a piece, its rows kBlock apart in `out`.
void decode_trits(const Storage& weight, const MatrixPiece& piece, std::int8_t* out);

// The rows of the piece, kPanelColumns at most, become the columns of one panel.
void pack_across(const Storage& weight, const MatrixPiece& piece, std::uint8_t* panel);
// The rows of the piece become the depth of panels, ld_panels apart, of columns [first, last) of
// the matrix, which lie in the piece's block. The columns of the last panel that are beyond them
// may be anything.
void pack_down(const Storage& weight, const MatrixPiece& piece, std::int64_t first,
               std::int64_t last, std::uint8_t* panels, std::int64_t ld_panels);

// sums[r - begin] = the sum of (trit + 1) x along row r, for rows [begin, end) and x [cols] in
// +-127.
void dot_rows(const Storage& weight, std::int64_t begin, std::int64_t end, const std::int8_t* x,
              std::int32_t* sums);

}  // namespace tritgrad
