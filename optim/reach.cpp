#include "optim/reach.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "engine/kernel_table.h"

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

ReachWatch::ReachWatch(const FormatSpec& format, const Shape& shape)
    : wanted_(true), elements_(shape.size()) {
  if (!rounds_updates(format.kind)) return;
  row_bytes_ = (shape.cols() + 7) / 8;
  const auto bytes = static_cast<std::size_t>(shape.rows() * row_bytes_);
  updated_ = Buffer(bytes, Category::kWorkspace);
  moved_ = Buffer(bytes, Category::kWorkspace);
}

bool ReachWatch::is_wanted(const ParameterSpec& spec, EcoForm eco) {
  const bool by_chance =
      rounds_updates(spec.format.kind) && spec.format.rounding == Rounding::kStochastic;
  return spec.role == Role::kWeight && !by_chance && eco == EcoForm::kOff;
}

void ReachWatch::look(const Storage& storage, const Block& block, const float* direction, float lr,
                      Seen& seen) {
  seen.peak = std::max(seen.peak, kernels().max_abs(direction, block.n));
  if (moved_.size() > 0) return look_at_elements(storage, block, direction, lr);
  std::array<float, kBlock> zone;
  storage.dead_zone(block, zone.data());
  for (std::int64_t i = 0; i < block.n; ++i) {
    if (direction[i] == 0.0f) continue;
    ++seen.updated;
    seen.moved += std::abs(lr * direction[i]) > zone[static_cast<std::size_t>(i)];
  }
}

// Elements that have moved are passed by, eight at a time: in a run that trains, the first steps
// leave little to look at.
void ReachWatch::look_at_elements(const Storage& storage, const Block& block,
                                  const float* direction, float lr) {
  const std::int64_t first = block.row * row_bytes_ + block.col / 8;
  std::uint8_t* updated = updated_.as<std::uint8_t>() + first;
  std::uint8_t* moved = moved_.as<std::uint8_t>() + first;
  std::array<float, kBlock> zone;
  bool zone_is_known = false;
  for (std::int64_t begin = 0; begin < block.n; begin += 8) {
    std::uint8_t& moved_bits = moved[begin / 8];
    if (moved_bits == 0xFF) continue;
    for (std::int64_t i = begin; i < std::min(begin + 8, block.n); ++i) {
      const auto bit = static_cast<std::uint8_t>(1u << (i - begin));
      if (direction[i] == 0.0f || (moved_bits & bit) != 0) continue;
      updated[begin / 8] |= bit;
      if (!zone_is_known) storage.dead_zone(block, zone.data());
      zone_is_known = true;
      if (std::abs(lr * direction[i]) > zone[static_cast<std::size_t>(i)]) moved_bits |= bit;
    }
  }
}

void ReachWatch::end_step(const Seen& seen, double lr) {
  peak_ = std::max(peak_, lr * static_cast<double>(seen.peak));
  if (moved_.size() > 0) {
    settled_ = count_bits(moved_) == elements_;
  } else if (seen.updated > 0) {
    const double share = static_cast<double>(seen.moved) / static_cast<double>(seen.updated);
    best_step_ = std::max(best_step_.value_or(0.0), share);
    settled_ = *best_step_ >= kStalledShare;
  }
}

double ReachWatch::movable() const {
  if (settled_) return 1.0;
  if (moved_.size() == 0) return best_step_.value_or(1.0);
  const std::int64_t updated = count_bits(updated_);
  return updated == 0 ? 1.0
                      : static_cast<double>(count_bits(moved_)) / static_cast<double>(updated);
}

std::optional<Reach> ReachWatch::reach(const Parameter& parameter) const {
  if (!wanted_) return std::nullopt;
  return Reach{&parameter, peak_, movable()};
}

}  // namespace tritgrad
