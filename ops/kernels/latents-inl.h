// Latents, codes of one byte that hold a trit and its accumulator: their trits and their update.
#pragma once

#include <algorithm>
#include <array>

#include "engine/buffer.h"
#include "ops/kernels/byte_sums-inl.h"
#include "ops/kernels/flips-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

void latent_to_trits(std::int8_t* trits, const std::int8_t* codes, int threshold, std::int64_t n) {
  const I8 up(static_cast<std::int8_t>(threshold)), down(static_cast<std::int8_t>(-threshold));
  const auto trits_of = [&](const I8& code) { return one_if(code > up) - one_if(code < down); };
  std::int64_t i = 0;
  for (; i + kLanes<I8> <= n; i += kLanes<I8>) write(trits + i, trits_of(read<I8>(codes + i)));
  if (i == n) return;
  write_first(trits + i, trits_of(read_first(codes + i, n - i, I8(std::int8_t{0}))), n - i);
}

// A row of codes that goes against sums of a product, all of them small (levels-inl.h).
struct LatentRow {
  std::int8_t* codes;
  const std::int32_t* sums;
  std::int32_t correction, noise_offset;
  float negative_scale;
};

// Rows that are rounded by the same noise but for its offset. Columns go by on the outside: what is
// made of the noise serves all rows.
class LatentRows {
 public:
  static constexpr std::int64_t kMost = 16;

  LatentRows(std::int8_t* codes, std::int64_t ld, const Direction* directions,
             const LevelRounding* roundings, std::int64_t rows)
      : noise_(roundings[0].noise), limit_(roundings[0].limit), count_(rows) {
    for (std::int64_t r = 0; r < rows; ++r) {
      rows_[r] = {codes + r * ld, directions[r].sums, directions[r].correction,
                  offset_bits(roundings[r].offset), -roundings[r].scale * directions[r].factor};
    }
  }

  // Rule and counts by value: behind references they would stay in memory.
  template <typename Rule>
  FlipCounts descend(const Rule rule, std::int64_t n) const {
    ByteCounts counts;
    std::int64_t i = 0;
    for (; i + kStep <= n; i += kStep) {
      alignas(kAlignment) std::int8_t changes[kMost * kStep];
      const NoiseOfBytes noise(noise_ + i);
      for (std::int64_t r = 0; r < count_; ++r) {
        const std::int32_t* sums = rows_[r].sums + i;
        write(changes + r * kStep,
              change(rows_[r], noise, [=]<int v>() { return read<I32>(sums + v * kLanes<I32>); }));
      }
      for (std::int64_t r = 0; r < count_; ++r) {
        std::int8_t* codes = rows_[r].codes + i;
        write(codes, rule(read<I8>(codes), read<I8>(changes + r * kStep), counts));
      }
    }
    if (i == n) return counts.total();
    // The last vector, filled up with sums that move nothing.
    const std::int64_t rest = n - i;
    std::uint16_t rest_noise[kStep] = {};
    __builtin_memcpy(rest_noise, noise_ + i, static_cast<std::size_t>(rest) * sizeof(*rest_noise));
    const NoiseOfBytes noise(rest_noise);
    for (std::int64_t r = 0; r < count_; ++r) {
      const LatentRow& row = rows_[r];
      const I32 none(row.correction);
      const I8 by = change(row, noise, [&]<int v>() {
        const std::int64_t left = rest - v * kLanes<I32>;
        const std::int32_t* sums = row.sums + i + v * kLanes<I32>;
        if (left <= 0) return none;
        return left < kLanes<I32> ? read_first(sums, left, none) : read<I32>(sums);
      });
      const I8 codes = read_first(row.codes + i, rest, splat_byte(0));
      write_first(row.codes + i, rule(codes, by, counts), rest);
    }
    return counts.total();
  }

 private:
  static constexpr std::int64_t kStep = kLanes<I8>;
  static constexpr int kVectors = kLanes<I8> / kLanes<I32>;

  struct NoiseOfBytes {
    explicit NoiseOfBytes(const std::uint16_t* noise) {
      unrolled<kVectors>([&]<int v>() { bits[v] = noise_bits(noise + v * kLanes<I32>); });
    }
    I32 bits[kVectors];
  };

  // read_sums<v>(): vector v of the row's sums.
  template <typename ReadSums>
  I8 change(const LatentRow& row, const NoiseOfBytes& noise, const ReadSums& read_sums) const {
    I32 levels[kVectors];
    unrolled<kVectors>([&]<int v>() {
      const F32 sum = xsimd::to_float(read_sums.template operator()<v>() - I32(row.correction));
      levels[v] = floor_of_small(F32(row.negative_scale) * sum +
                                 noise_from_bits(noise.bits[v], I32(row.noise_offset)));
    });
    const I8 wanted = narrow(levels[0], levels[1], levels[2], levels[3]);
    return xsimd::max(limit_ == kMostByteLevels ? wanted : xsimd::min(wanted, splat_byte(limit_)),
                      splat_byte(-limit_));
  }

  LatentRow rows_[kMost];
  const std::uint16_t* noise_;
  int limit_;
  std::int64_t count_;
};

bool share_noise(const Direction* directions, const LevelRounding* roundings, std::int64_t rows) {
  for (std::int64_t r = 0; r < rows; ++r) {
    if (directions[r].floats != nullptr || !are_small(directions[r], roundings[r]) ||
        roundings[r].noise == nullptr || roundings[r].noise != roundings[0].noise ||
        roundings[r].limit != roundings[0].limit) {
      return false;
    }
  }
  return true;
}

template <typename Rule>
FlipCounts descend_latent_by(const Rule& rule, std::int8_t* codes, std::int64_t ld,
                             const Direction* directions, const LevelRounding* roundings,
                             std::int64_t rows, std::int64_t n) {
  FlipCounts counts;
  for (std::int64_t first = 0; first < rows; first += LatentRows::kMost) {
    const std::int64_t end = std::min(rows, first + LatentRows::kMost);
    if (share_noise(directions + first, roundings + first, end - first)) {
      const LatentRows together(codes + first * ld, ld, directions + first, roundings + first,
                                end - first);
      counts += together.descend(rule, n);
      continue;
    }
    for (std::int64_t r = first; r < end; ++r) {
      const std::array<std::int8_t*, 1> planes{codes + r * ld};
      ByteCounts of_row;
      with_direction(directions[r], roundings[r], [&](const auto& source) {
        for_each_byte_vector(planes, source, roundings[r], n,
                             [&](const auto& at, const I8& change) {
                               write(at[0], rule(read<I8>(at[0]), change, of_row));
                             });
      });
      counts += of_row.total();
    }
  }
  return counts;
}

FlipCounts descend_latent(std::int8_t* codes, std::int64_t ld, const Direction* directions,
                          const LevelRounding* roundings, int threshold, int hysteresis,
                          std::int64_t rows, std::int64_t n) {
  return with_byte_rule(threshold, hysteresis, [&](const auto& rule) {
    return descend_latent_by(rule, codes, ld, directions, roundings, rows, n);
  });
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
