#include "optim/reach.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "engine/formats/float_gap.h"
#include "engine/kernels/reductions.h"

namespace tritgrad {
namespace {

std::int64_t count_bits(const Buffer& buffer) {
  std::int64_t count = 0;
  for (std::byte bits : buffer.bytes()) count += std::popcount(std::to_integer<unsigned>(bits));
  return count;
}

}  // namespace

ReachWatch::Seen& ReachWatch::Seen::operator+=(const Seen& other) {
  peak = std::max(peak, other.peak);
  updated += other.updated;
  moved += other.moved;
  return *this;
}

bool ReachWatch::keeps_bits(const ParameterSpec& spec, EcoForm eco) {
  const bool by_chance =
      spec.format.traits().rounds_updates && spec.format.rounding == Rounding::kStochastic;
  return spec.role == Role::kWeight && !by_chance && eco == EcoForm::kOff;
}

ReachWatch::ReachWatch(const ParameterSpec& spec, EcoForm eco)
    : wanted_(true),
      is_open_(true),
      eco_(eco != EcoForm::kOff),
      keeps_bits_(keeps_bits(spec, eco)) {
  const Shape& shape = spec.shape;
  const std::int64_t cols = std::max<std::int64_t>(1, shape.cols());
  blocks_per_row_ = (cols + kBlock - 1) / kBlock;
  block_bytes_ = (std::min(cols, kBlock) + 7) / 8;
  const std::int64_t blocks = shape.rows() * blocks_per_row_;
  const std::int64_t most = kMaxBytes / 2 / block_bytes_;
  stride_ = std::max<std::int64_t>(1, (blocks + most - 1) / most);
  // With a common divisor, the same columns would come in every row.
  while (std::gcd(stride_, blocks_per_row_) > 1) ++stride_;
  if (!keeps_bits_) return;
  std::int64_t watched = 0;
  for (std::int64_t index = 0; index < blocks; index += stride_, ++watched) {
    elements_ += std::min(kBlock, cols - index % blocks_per_row_ * kBlock);
  }
  const auto bytes = static_cast<std::size_t>(watched * block_bytes_);
  updated_ = Buffer(bytes, Category::kWorkspace);
  moved_ = Buffer(bytes, Category::kWorkspace);
}

void ReachWatch::read_zone(const Storage& storage, const Block& block, float* zone) const {
  if (!eco_) return storage.dead_zone(block, zone);
  storage.decode_master(block, zone);
  half_gaps_of_floats(zone, block.n);
}

// Elements that have moved are passed by, eight at a time: in a run that trains, the first steps
// leave little to look at.
void ReachWatch::look(const Storage& storage, const Block& block, const float* direction, float lr,
                      Seen& seen) {
  const std::int64_t index = block.row * blocks_per_row_ + block.col / kBlock;
  if (index % stride_ != 0) return;
  seen.peak = std::max(seen.peak, kernels().reductions.max_abs(direction, block.n));
  std::array<float, kBlock> zone;
  if (!keeps_bits_) {
    read_zone(storage, block, zone.data());
    for (std::int64_t i = 0; i < block.n; ++i) {
      seen.updated += direction[i] != 0.0f;
      seen.moved += std::abs(lr * direction[i]) > zone[static_cast<std::size_t>(i)];
    }
    return;
  }
  std::uint8_t* updated = updated_.as<std::uint8_t>() + index / stride_ * block_bytes_;
  std::uint8_t* moved = moved_.as<std::uint8_t>() + index / stride_ * block_bytes_;
  bool zone_is_known = false;
  for (std::int64_t begin = 0; begin < block.n; begin += 8) {
    std::uint8_t& moved_bits = moved[begin / 8];
    if (moved_bits == 0xFF) continue;
    for (std::int64_t i = begin; i < std::min(begin + 8, block.n); ++i) {
      const auto bit = static_cast<std::uint8_t>(1u << (i - begin));
      if (direction[i] == 0.0f || (moved_bits & bit) != 0) continue;
      updated[begin / 8] |= bit;
      if (!zone_is_known) read_zone(storage, block, zone.data());
      zone_is_known = true;
      if (std::abs(lr * direction[i]) > zone[static_cast<std::size_t>(i)]) moved_bits |= bit;
    }
  }
}

void ReachWatch::end_step(const Seen& seen, double lr) {
  peak_ = std::max(peak_, lr * static_cast<double>(seen.peak));
  if (keeps_bits_) {
    is_open_ = count_bits(moved_) < elements_;
  } else if (seen.updated > 0) {
    best_share_ =
        std::max(best_share_, static_cast<double>(seen.moved) / static_cast<double>(seen.updated));
    is_open_ = best_share_ < kStalledShare;
  }
  if (is_open_) return;
  updated_ = Buffer();
  moved_ = Buffer();
}

double ReachWatch::movable() const {
  if (!is_open_) return 1.0;
  if (!keeps_bits_) return peak_ > 0.0 ? best_share_ : 1.0;
  const std::int64_t updated = count_bits(updated_);
  return updated == 0 ? 1.0
                      : static_cast<double>(count_bits(moved_)) / static_cast<double>(updated);
}

std::optional<Reach> ReachWatch::reach(const Parameter& parameter) const {
  if (!wanted_) return std::nullopt;
  return Reach{&parameter, peak_, movable()};
}

}  // namespace tritgrad
