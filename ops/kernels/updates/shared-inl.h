// The update of trits that share accumulators: engine/formats/shared_accumulator.h without a
// branch. A vector holds whole groups, and what a group has one of stands in all of its lanes.
#pragma once

#include <algorithm>
#include <array>

#include "engine/formats/shared_accumulator.h"
#include "ops/kernels/updates/flips-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

template <typename Of>
constexpr std::array<std::int8_t, kLanes<I8>> byte_lanes(const Of& of) {
  std::array<std::int8_t, kLanes<I8>> lanes{};
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    lanes[i] = static_cast<std::int8_t>(of(static_cast<int>(i)));
  }
  return lanes;
}

// Bytes hold k times as many levels, as the stored byte does: |k levels| <= k L <= 124.
template <int kSharing>
class SharedRule {
 public:
  static constexpr std::int64_t kStep = kLanes<I8>;
  static constexpr std::int64_t kGroups = kStep / kSharing;
  static constexpr int kTop = kSharing * shared_threshold(kSharing);
  static_assert(kGroups <= 16, "or look_up() would not reach the bytes of a vector's groups");

  explicit SharedRule(int turn)
      : rank_(read<I8>(kNumberInGroup.data())), last_rank_(splat_byte(turn + kSharing - 1)) {
    rank_ = (last_rank_ - rank_) & in_group_;
  }

  // `shared` are the bytes of kGroups groups.
  I8 operator()(const I8& trit, const I8& levels, std::int8_t* shared, FlipCounts& counts) const {
    const I8 stored = stored_bytes(shared), owner = stored & in_group_;
    const I8 before = max(stored & ~in_group_, -top_);
    const I8 change = times_sharing(levels);
    const I8 sum = sadd(before, of_group(change, owner));
    // A free accumulator passes neither: its sum is the change alone.
    const ByteMask past_top = sum > top_, past_bottom = sum < -top_;
    const ByteMask crossed =
        ((before > zero_) & (sum <= zero_)) | ((before < zero_) & (sum >= zero_));
    const ByteMask released = past_top | past_bottom | crossed;

    const ByteMask can_rise = trit < one_;
    const ByteMask can_fall = trit > -one_;
    const ByteMask owns = owner == number_;
    const I8 claimed =
        claim(change,
              (((change > zero_) & can_rise) | ((change < zero_) & can_fall)) & ~(released & owns));
    write_every<kSharing>(shared, select(released | (before == zero_), claimed, sum | owner));

    const ByteMask rises = past_top & owns & can_rise, falls = past_bottom & owns & can_fall;
    const std::int64_t flips = count(rises | falls);
    counts.flips += flips;
    counts.rail_flips += count((past_top | past_bottom) & owns) - flips;
    return trit + select(rises, one_, zero_) - select(falls, one_, zero_);
  }

 private:
  using Lanes = std::array<std::int8_t, kStep>;
  static constexpr Lanes kGroup = byte_lanes([](int i) { return i / kSharing; });
  static constexpr Lanes kNumberInGroup = byte_lanes([](int i) { return i % kSharing; });
  // The place of a group's first byte in the sixteen that look_up() sees at a time.
  static constexpr Lanes kFirst = byte_lanes([](int i) { return i % 16 / kSharing * kSharing; });
  template <int kDistance>
  static constexpr Lanes kRotated = byte_lanes([](int i) {
    return i % 16 / kSharing * kSharing + (i + kDistance) % kSharing;
  });

  static I8 stored_bytes(const std::int8_t* shared) {
    const U8 table = table_of<kGroups>(reinterpret_cast<const std::uint8_t*>(shared));
    return I8(look_up(table, U8(read<I8>(kGroup.data()))));
  }
  // Returns the byte in lane `number` of each group.
  I8 of_group(const I8& x, const I8& number) const {
    return I8(look_up(U8(x), U8(first_ + number)));
  }
  static I8 times_sharing(I8 x) {
    for (int k = 1; k < kSharing; k *= 2) x = x + x;
    return x;
  }
  template <int kDistance>
  static I8 largest_of_group(const I8& key) {
    const I8 larger = max(key, I8(look_up(U8(key), U8(read<I8>(kRotated<kDistance>.data())))));
    if constexpr (kDistance == 1) {
      return larger;
    } else {
      return largest_of_group<kDistance / 2>(larger);
    }
  }
  // The byte that a free accumulator becomes: magnitude and rank make a key, whose largest wins.
  I8 claim(const I8& change, const ByteMask& asks) const {
    const I8 key = largest_of_group<kSharing / 2>(select(asks, abs(change) | rank_, zero_));
    const I8 winner = (last_rank_ - (key & in_group_)) & in_group_;
    return select(key > in_group_, of_group(change, winner) | winner, zero_);
  }

  const I8 zero_ = splat_byte(0), one_ = splat_byte(1), in_group_ = splat_byte(kSharing - 1);
  const I8 top_ = splat_byte(kTop);
  const I8 number_ = read<I8>(kNumberInGroup.data()), first_ = read<I8>(kFirst.data());
  I8 rank_;  // among equal magnitudes the highest wins: kSharing - 1 for number `turn`
  I8 last_rank_;
};

// The last vector is filled up with weights that ask for nothing, and so are its groups.
template <int kSharing>
struct DescendShared {
  using Rule = SharedRule<kSharing>;

  [[gnu::always_inline]] void operator()(const std::array<std::int8_t*, 1>& at, const I8& levels,
                                         FlipCounts& counts, std::int64_t i) const {
    std::int8_t* here = shared + i / kSharing;
    if (n - i >= Rule::kStep) {
      write(at[0], rule(read<I8>(at[0]), levels, here, counts));
      return;
    }
    const std::int64_t groups = (n - i + kSharing - 1) / kSharing;
    std::int8_t bytes[Rule::kGroups] = {};
    __builtin_memcpy(bytes, here, static_cast<std::size_t>(groups));
    write(at[0], rule(read<I8>(at[0]), levels, bytes, counts));
    __builtin_memcpy(here, bytes, static_cast<std::size_t>(groups));
  }

  Rule rule;
  std::int8_t* shared;
  std::int64_t n;
};

template <int kSharing>
void descend_shared_by(FlipCounts* counts, std::int8_t* trits, std::int64_t ld, std::int8_t* shared,
                       std::int64_t ld_shared, const DirectionRows& rows, int turn) {
  const SharedRule<kSharing> rule(turn);
  std::fill_n(counts, rows.count, FlipCounts{});
  for_each_levels(
      rows, [&](std::int64_t r, std::int64_t col, std::int64_t n, const std::int8_t* levels) {
        const std::array<std::int8_t*, 1> row{trits + r * ld + col};
        const DescendShared<kSharing> next{rule, shared + r * ld_shared + col / kSharing, n};
        FlipCounts of_row;
        for_each_byte_vector(row, levels, n, next, of_row);
        counts[r] += of_row;
      });
}

void descend_shared(FlipCounts* counts, std::int8_t* trits, std::int64_t ld, std::int8_t* shared,
                    std::int64_t ld_shared, const DirectionRows& rows, int sharing, int turn) {
  switch (sharing) {
    case 4:
      return descend_shared_by<4>(counts, trits, ld, shared, ld_shared, rows, turn);
    case 8:
      return descend_shared_by<8>(counts, trits, ld, shared, ld_shared, rows, turn);
    default:
      return descend_shared_by<16>(counts, trits, ld, shared, ld_shared, rows, turn);
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
