// The dead zone that a format announces, against what updates really do.
#include <algorithm>
#include <array>
#include <limits>

#include "engine/formats/float_gap.h"
#include "tests/support/support.h"
#include "tests/support/support_formats.h"

namespace tritgrad::test::test_dead_zone {
namespace {

std::vector<float> dead_zones(const Storage& storage) {
  std::vector<float> zones;
  for_each_block(storage.shape(), [&](const Block& block) {
    std::array<float, kBlock> out;
    storage.dead_zone(block, out.data());
    zones.insert(zones.end(), out.begin(), out.begin() + block.n);
  });
  return zones;
}

// Whether moving element `index` alone by `amount` changes what is stored; the bytes are put back.
// Masters differ if bytes do, but for the sign of a zero, which is no movement.
bool moves(Storage& storage, std::int64_t index, float amount) {
  const std::int64_t cols = storage.shape().cols();
  const std::int64_t row = index / cols, col = index % cols / kBlock * kBlock;
  std::array<float, kBlock> direction{};
  direction[static_cast<std::size_t>(index % cols - col)] = -1.0f;
  std::vector<std::vector<std::byte>> bytes;
  for (const Plane& plane : storage.planes()) {
    bytes.emplace_back(plane.bytes.begin(), plane.bytes.end());
  }
  const std::vector<double> before = decoded(storage, true);
  storage.descend({row, col, std::min(kBlock, cols - col)}, direction.data(), {amount, {}});
  const bool moved = decoded(storage, true) != before;
  for (std::size_t p = 0; p < bytes.size(); ++p) {
    std::copy(bytes[p].begin(), bytes[p].end(), storage.planes()[p].bytes.begin());
  }
  return moved;
}

// Below the zone nothing moves, above it one of the two directions does: the other one may be at
// the end of the range or have the longer step.
void check_zones(Storage& storage) {
  CAPTURE(std::string(format_name(storage.spec().kind)));
  const std::vector<float> zones = dead_zones(storage);
  for (std::int64_t i = 0; i < std::ssize(zones); ++i) {
    CAPTURE(i);
    const float zone = zones[static_cast<std::size_t>(i)];
    CAPTURE(zone);
    REQUIRE(zone > 0.0f);
    REQUIRE_FALSE(moves(storage, i, 0.99f * zone));
    REQUIRE_FALSE(moves(storage, i, -0.99f * zone));
    REQUIRE((moves(storage, i, 1.01f * zone) || moves(storage, i, -1.01f * zone)));
  }
}

const std::vector<FormatKind> kTrained = formats_for(kWeight | kScale);

}  // namespace

TEST_CASE("dead zone: an update below it is lost, one above it is not, whatever the format") {
  for (FormatKind kind : kTrained) {
    Storage storage(spec_of(kind), {2, 353}, Category::kWeights);
    std::vector<float> input = numbers(2 * 353, 12);
    for (std::size_t i = 0; i < input.size(); ++i) {
      // All magnitudes; powers of two, below which numbers lie closer; few of them, so that no two
      // largest elements of a group are alike.
      input[i] = std::ldexp(input[i], static_cast<int>(i % 12) - 9);
      if (i % 29 == 0) input[i] = std::ldexp(1.0f, static_cast<int>(i % 7) - 9);
      if (kind == FormatKind::kScale16) input[i] = std::abs(input[i]) + 0x1p-13f;
    }
    encode_all(storage, input);
    check_zones(storage);
  }
}

TEST_CASE("dead zone: it follows threshold and flip policy of ternary") {
  for (int threshold : {0, 7, 126}) {
    for (OnFlip on_flip : {OnFlip::kCarry, OnFlip::kReset}) {
      FormatSpec spec = spec_of(FormatKind::kTernary);
      spec.flips.threshold = threshold;
      spec.flips.on_flip = on_flip;
      Storage storage(spec, {1, 23}, Category::kWeights);
      encode_all(storage, numbers(23, 3));
      CAPTURE(threshold);
      check_zones(storage);
    }
  }
}

TEST_CASE("dead zone: of an element that sets the scale it is the change that moves the scale") {
  // The bf16 scale 1 has neighbours 1 + 2^-7 and 1 - 2^-8, half way to which the top code is.
  Storage int8(spec_of(FormatKind::kInt8), {1, 3}, Category::kWeights);
  encode_all(int8, {127.0f, 64.0f, 0.0f});
  CHECK(dead_zones(int8) == std::vector<float>{127.0f * 0x1p-9f, 0.5f, 0.5f});
  Storage int4(spec_of(FormatKind::kInt4), {1, 3}, Category::kWeights);
  encode_all(int4, {-7.0f, 4.0f, 0.0f});
  CHECK(dead_zones(int4) == std::vector<float>{7.0f * 0x1p-9f, 0.5f, 0.5f});
  Storage fp8(spec_of(FormatKind::kFp8), {1, 6}, Category::kWeights);
  encode_all(fp8, {448.0f, 416.0f, 0x1p-6f, 0x1p-5f, 0.0f, -8.0f});
  CHECK(dead_zones(fp8) ==
        std::vector<float>{448.0f * 0x1p-9f, 16.0f, 0x1p-10f, 0x1p-10f, 0x1p-10f, 0.25f});
  check_zones(int8);
  check_zones(int4);
  check_zones(fp8);
}

TEST_CASE("dead zone: zeros leave it with the first number that has a scale") {
  for (FormatKind kind : {FormatKind::kInt8, FormatKind::kInt4, FormatKind::kFp8}) {
    Storage storage(spec_of(kind), {2, 33}, Category::kWeights);
    check_zones(storage);
  }
}

TEST_CASE("dead zone: where a shared scale does not fit its largest code, every update moves") {
  for (FormatKind kind : {FormatKind::kInt8, FormatKind::kInt4, FormatKind::kFp8}) {
    CAPTURE(std::string(format_name(kind)));
    Storage storage(spec_of(kind), {1, 3}, Category::kWeights);
    encode_all(storage, {0.4f, 0.4f, 0.13f});
    // Copies of the smallest element over the others: the top code is gone, the scale stays.
    const auto codes = storage.planes()[0].bytes;
    if (kind == FormatKind::kInt4) {
      codes[0] = codes[1] = std::byte{0x9A};
    } else {
      codes[0] = codes[1] = codes[2];
    }
    for (float zone : dead_zones(storage)) CHECK(zone == 0.0f);
    CHECK(moves(storage, 1, 1e-6f));
  }
}

TEST_CASE("dead zone: where chance rounds it is what its noise or fp32 is too coarse for") {
  // The largest and the smallest of all noise: beyond the zone one of them moves, below it none.
  const std::vector<std::uint32_t> noise = {as_fraction(0), as_fraction(0xFFFF)};
  const auto level = [&](float x) {
    const std::vector<float> direction(2, -x);
    std::array<std::int16_t, 2> levels;
    kernels().updates.quantize_levels(levels.data(), direction.data(), {1.0f, 1, noise.data()}, 2);
    return levels;
  };
  const float zone = lost_share(Rounding::kStochastic);
  CHECK(level(0.99f * zone) == std::array<std::int16_t, 2>{0, 0});
  CHECK(level(-0.99f * zone) == std::array<std::int16_t, 2>{0, 0});
  CHECK(level(1.01f * zone) == std::array<std::int16_t, 2>{0, 1});
  CHECK(level(-1.01f * zone) == std::array<std::int16_t, 2>{-1, 0});

  for (FormatKind kind : kTrained) {
    CAPTURE(std::string(format_name(kind)));
    Storage storage(spec_of(kind, Rounding::kStochastic), {1, 9}, Category::kWeights);
    encode_all(storage, {1.0f, 0.5f, 0.25f, 0.75f, 0.3f, 0.1f, 0.9f, 0.7f, 0.6f});
    const std::vector<float> zones = dead_zones(storage);
    for (std::int64_t i = 0; i < std::ssize(zones); ++i) {
      const float below = 0.99f * zones[static_cast<std::size_t>(i)];
      REQUIRE(below > 0.0f);
      CHECK_FALSE(moves(storage, i, below));
      CHECK_FALSE(moves(storage, i, -below));
    }
  }
}

TEST_CASE("dead zone: the gap to the neighbour on the side of zero") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  CHECK(gap_towards_zero(1.0f, 0) == 0x1p-24f);
  CHECK(gap_towards_zero(-1.5f, 0) == 0x1p-23f);
  CHECK(gap_towards_zero(0.0f, 0) == 0x1p-149f);
  CHECK(gap_towards_zero(-0.0f, 16) == 0x1p-133f);
  CHECK(gap_towards_zero(0x1p-149f, 0) == 0x1p-149f);
  CHECK(gap_towards_zero(1.0f, 16) == 0x1p-8f);
  CHECK(gap_towards_zero(-3.0f, 16) == 0x1p-6f);
  CHECK(gap_towards_zero(kInf, 16) == kInf);
  CHECK(std::isnan(gap_towards_zero(std::numeric_limits<float>::quiet_NaN(), 0)));
}

}  // namespace tritgrad::test::test_dead_zone
