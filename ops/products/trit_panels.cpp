#include "ops/products/trit_panels.h"

#include <algorithm>
#include <array>

#include "engine/check.h"
#include "engine/formats/packed_codes.h"
#include "engine/kernels/codecs.h"
#include "engine/kernels/products.h"

namespace tritgrad {
namespace {

using Kind = TritLayout::Kind;

// The trits of a piece, rows kBlock apart.
using DecodedTrits = std::array<std::int8_t, kPanelColumns * kBlock>;

const std::uint8_t* packed_at(const TritLayout& layout, const Block& block) {
  const std::int64_t offset = layout.kind == Kind::kFiveToAByte
                                  ? block.row * layout.row_bytes + block.col / 5
                                  : packed_offset(layout.bits, layout.cols, block);
  return reinterpret_cast<const std::uint8_t*>(layout.bytes) + offset;
}

const std::int8_t* codes_at(const TritLayout& layout, const Block& block) {
  return reinterpret_cast<const std::int8_t*>(layout.bytes) +
         layout.order.offset(block.row, block.col);
}

void decode_block(const TritLayout& layout, const Block& block, std::int8_t* out) {
  switch (layout.kind) {
    case Kind::kFiveToAByte:
      return kernels().codecs.decode_trits(out, 0, packed_at(layout, block), 0, 1, block.n);
    case Kind::kCodeAByte:
      return kernels().codecs.latent_to_trits(out, codes_at(layout, block), layout.threshold,
                                              block.n);
    case Kind::kPackedCodes: {
      std::array<std::int8_t, kBlock> codes;
      kernels().codecs.unpack_codes(codes.data(), packed_at(layout, block), layout.bits,
                                    layout.max_code, block.n);
      return kernels().codecs.latent_to_trits(out, codes.data(), layout.threshold, block.n);
    }
    case Kind::kNone:
      break;
  }
  fail("decode_trits: the weight's format holds no trits");
}

// Decodes the block and those below it, `rows` in all, kBlock apart in `out`.
void decode_rows(const TritLayout& layout, Block block, std::int64_t rows, std::int8_t* out) {
  if (layout.kind == Kind::kFiveToAByte) {
    return kernels().codecs.decode_trits(out, kBlock, packed_at(layout, block), layout.row_bytes,
                                         rows, block.n);
  }
  if (layout.kind == Kind::kCodeAByte && block.n == kBlock) {
    return kernels().codecs.latent_to_trits(out, codes_at(layout, block), layout.threshold,
                                            rows * kBlock);
  }
  for (std::int64_t r = 0; r < rows; ++r, ++block.row)
    decode_block(layout, block, out + r * kBlock);
}

// Packs as stored and decodes last, where the layout and the piece's sizes suit such a kernel.
// Returns whether they do.
bool packs_across(const TritLayout& layout, const Block& block, std::int64_t rows,
                  std::uint8_t* panel) {
  if (rows != kPanelColumns) return false;
  switch (layout.kind) {
    case Kind::kFiveToAByte:
      if (block.n != kBlock) return false;
      kernels().products.pack_trits_across(panel, packed_at(layout, block), layout.row_bytes);
      return true;
    case Kind::kCodeAByte:
      if (block.n % kPanelColumns != 0) return false;
      kernels().products.pack_latents_across(
          panel, codes_at(layout, block), layout.order.width(block.col), block.n, layout.threshold);
      return true;
    case Kind::kPackedCodes:
    case Kind::kNone:
      break;
  }
  return false;
}

// Packs columns [begin, end) of the blocks of `rows` rows in the same way, as depth.
bool packs_down(const TritLayout& layout, const Block& block, std::int64_t rows, std::int64_t begin,
                std::int64_t end, std::uint8_t* panels, std::int64_t ld_panels) {
  if (rows % 4 != 0) return false;
  switch (layout.kind) {
    case Kind::kFiveToAByte:
      if (block.n != kBlock || begin % kPanelColumns != 0) return false;
      kernels().products.pack_trits_down(panels, ld_panels, packed_at(layout, block),
                                         layout.row_bytes, rows, begin / kPanelColumns,
                                         (end + kPanelColumns - 1) / kPanelColumns);
      return true;
    case Kind::kCodeAByte:
      if ((end - begin) % kPanelColumns != 0) return false;
      kernels().products.pack_latents_down(panels, ld_panels, codes_at(layout, block) + begin,
                                           layout.order.width(block.col), rows, end - begin,
                                           layout.threshold);
      return true;
    case Kind::kPackedCodes:
    case Kind::kNone:
      break;
  }
  return false;
}

}  // namespace

void decode_trits(const Storage& weight, const Block& block, std::int8_t* out) {
  decode_block(weight.trit_layout(), block, out);
}

void decode_trits(const Storage& weight, const MatrixPiece& piece, std::int8_t* out) {
  decode_rows(weight.trit_layout(), piece.first_block(weight.shape().cols()),
              piece.row_end - piece.row_begin, out);
}

void pack_across(const Storage& weight, const MatrixPiece& piece, std::uint8_t* panel) {
  const TritLayout layout = weight.trit_layout();
  const std::int64_t rows = piece.row_end - piece.row_begin;
  const Block block = piece.first_block(layout.cols);
  if (packs_across(layout, block, rows, panel)) return;
  alignas(kAlignment) DecodedTrits trits;
  decode_rows(layout, block, rows, trits.data());
  kernels().products.pack_across(panel, trits.data(), kBlock, block.n, rows, 1);
}

void pack_down(const Storage& weight, const MatrixPiece& piece, std::int64_t first,
               std::int64_t last, std::uint8_t* panels, std::int64_t ld_panels) {
  const TritLayout layout = weight.trit_layout();
  const std::int64_t rows = piece.row_end - piece.row_begin;
  const std::int64_t begin = first - piece.col, end = last - piece.col;
  Block block = piece.first_block(layout.cols);
  if (packs_down(layout, block, rows, begin, end, panels, ld_panels)) return;
  alignas(kAlignment) DecodedTrits trits;
  for (std::int64_t part = 0; part < rows; part += kPanelColumns) {
    const std::int64_t n = std::min(kPanelColumns, rows - part);
    block.row = piece.row_begin + part;
    decode_rows(layout, block, n, trits.data());
    std::uint8_t* panel = panels + part * kPanelColumns;
    for (std::int64_t column = begin; column < end; column += kPanelColumns) {
      kernels().products.pack_down(panel, trits.data() + column, kBlock, n,
                                   std::min(kPanelColumns, end - column), 1);
      panel += ld_panels;
    }
  }
}

void dot_rows(const Storage& weight, std::int64_t begin, std::int64_t end, const std::int8_t* x,
              std::int32_t* sums) {
  const TritLayout layout = weight.trit_layout();
  if (layout.kind == Kind::kFiveToAByte) {
    return kernels().products.dot_packed_trits(sums, packed_at(layout, {begin}), layout.row_bytes,
                                               end - begin, x, layout.cols);
  }
  std::int32_t sum_x = 0;
  kernels().products.sum_int8(&sum_x, x, layout.cols, 1, layout.cols);
  std::fill_n(sums, end - begin, sum_x);
  for_each_block(begin, end, layout.cols, [&](const Block& block) {
    std::array<std::int8_t, kBlock> trits;
    decode_block(layout, block, trits.data());
    sums[block.row - begin] += kernels().products.dot_int8(trits.data(), x + block.col, block.n);
  });
}

}  // namespace tritgrad
