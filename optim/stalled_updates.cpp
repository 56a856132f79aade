#include "optim/stalled_updates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace tritgrad {
namespace {

constexpr std::int64_t kSmallestPiece = 16;

// Noise of 16 bits never carries an update of less than 2^-17 of a level to the next level. With
// reset, levels grow with the learning rate from the 127th of a trit on.
float smallest_update(const FormatSpec& spec) {
  if (!spec.traits().holds_trits) return 0.0f;
  const FlipPolicy& flips = spec.flips;
  const int levels = spec.kind != FormatKind::kTernary ? spec.traits().levels_per_trit
                     : flips.on_flip == OnFlip::kCarry ? flips.levels_per_trit()
                                                       : 127;
  return 0x1p-17f / static_cast<float>(levels);
}

}  // namespace

StalledUpdates::StalledUpdates(const ParameterSpec& spec, EcoForm eco) {
  const bool by_chance =
      spec.format.traits().rounds_updates && spec.format.rounding == Rounding::kStochastic;
  is_carried_ = by_chance || eco != EcoForm::kOff;
  if (by_chance && eco == EcoForm::kOff) smallest_update_ = smallest_update(spec.format);
  const std::int64_t rows = spec.shape.rows();
  const std::int64_t cols = std::max<std::int64_t>(1, spec.shape.cols());
  blocks_per_row_ = (cols + kBlock - 1) / kBlock;
  const std::int64_t blocks = std::max<std::int64_t>(1, rows * blocks_per_row_);
  piece_ = std::min(std::max(kMostElements / blocks, kSmallestPiece), std::min(cols, kBlock));
  const std::int64_t most = kMostElements / piece_;
  stride_ = (blocks + most - 1) / most;
  // If they had a common divisor, the same columns would come in every row.
  while (std::gcd(stride_, blocks_per_row_) > 1) ++stride_;
  const std::int64_t watched = (blocks + stride_ - 1) / stride_;
  sample_ =
      Buffer(static_cast<std::size_t>(watched * piece_) * sizeof(Element), Category::kWorkspace);
}

// Pieces begin in other places from one row to the next, so that they meet all columns.
StalledUpdates::Piece StalledUpdates::piece_of(const Block& block) const {
  const std::int64_t index = block.row * blocks_per_row_ + block.col / kBlock;
  if (index % stride_ != 0) return {};
  const std::int64_t nth = index / stride_;
  const std::int64_t places = std::max<std::int64_t>(1, block.n - piece_ + 1);
  const std::int64_t begin = nth / blocks_per_row_ * piece_ % places;
  return {sample_.as<Element>() + nth * piece_, begin, std::min(begin + piece_, block.n)};
}

void StalledUpdates::before_update(const Storage& storage, const Block& block,
                                   const float* direction) {
  const Piece piece = piece_of(block);
  if (piece.elements == nullptr) return;
  std::array<float, kBlock> masters;
  storage.decode_master(block, masters.data());
  Element* element = piece.elements;
  for (std::int64_t i = piece.begin; i < piece.end; ++i, ++element) {
    element->master = masters[static_cast<std::size_t>(i)];
    element->direction = direction[i];
  }
}

bool StalledUpdates::moves(const Element& before, float after, float lr) const {
  if (!is_carried_) return after != before.master;
  const float update = lr * before.direction;
  if (smallest_update_ > 0.0f) return std::abs(update) > smallest_update_;
  return before.master - update != before.master;
}

void StalledUpdates::after_update(const Storage& storage, double lr) {
  std::int64_t elements = 0, updated = 0, moved = 0;
  const std::int64_t cols = storage.shape().cols();
  const std::int64_t blocks = storage.shape().rows() * blocks_per_row_;
  for (std::int64_t index = 0; index < blocks; index += stride_) {
    const std::int64_t col = index % blocks_per_row_ * kBlock;
    const Block block{index / blocks_per_row_, col, std::min(kBlock, cols - col)};
    const Piece piece = piece_of(block);
    std::array<float, kBlock> masters;
    storage.decode_master(block, masters.data());
    Element* element = piece.elements;
    for (std::int64_t i = piece.begin; i < piece.end; ++i, ++element) {
      largest_ = std::max(largest_, lr * std::abs(static_cast<double>(element->direction)));
      if (element->direction != 0.0f) {
        element->updated = true;
        if (moves(*element, masters[static_cast<std::size_t>(i)], static_cast<float>(lr))) {
          element->moved = true;
        }
      }
      ++elements;
      updated += element->updated;
      moved += element->moved;
    }
  }
  if (updated > 0) moved_ = static_cast<double>(moved) / static_cast<double>(updated);
  const bool all_move = is_carried_ ? updated > 0 && moved_ >= kStalledShare : moved == elements;
  if (!all_move) return;
  moved_ = 1.0;
  sample_ = Buffer();
}

}  // namespace tritgrad
