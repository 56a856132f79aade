// What the classes of formats say of themselves in their traits, where others rely on it.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "engine/kernels/updates.h"
#include "ops/products/trit_panels.h"
#include "tests/support/support.h"
#include "tests/support/support_formats.h"

namespace tritgrad::test::test_format_traits {
namespace {

constexpr std::int64_t kRows = 3, kCols = 3 * kBlock + 17;  // 17: no whole group of 32
constexpr RandomKey kKey = {1, 2, 3};
constexpr float kSmallStep = 0x1p-8f;

std::vector<float> masters(FormatKind kind, std::uint32_t salt = 31) {
  std::vector<float> all = numbers(kRows * kCols, salt);
  const bool positive = kind == FormatKind::kScale16 || kind == FormatKind::kRoot8;
  for (float& x : all) x = positive ? std::abs(x) + 0.01f : x;
  return all;
}

Storage storage_of(FormatKind kind, Rounding rounding) {
  Storage storage(spec_of(kind, rounding), {kRows, kCols}, Category::kWeights);
  encode_all(storage, masters(kind));
  return storage;
}

void descend(Storage& storage, const std::vector<float>& direction, float lr) {
  const Descent descent(lr, kKey);
  for_each_block(storage.shape(), [&](const Block& block) {
    descend_block(storage, block, direction.data() + block.row * kCols + block.col, descent);
  });
  storage.refresh();
}

}  // namespace

TEST_CASE("format traits: long blocks are as their blocks one by one") {
  int formats = 0;
  for (FormatKind kind : formats_for(kWeight | kScale | kM | kV)) {
    for (Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {
      if (!spec_of(kind, rounding).takes_long_blocks()) continue;
      CAPTURE(std::string(format_name(kind)));
      ++formats;
      const Storage blocks = storage_of(kind, rounding);
      Storage rows = storage_of(kind, rounding);
      const std::vector<float> other = masters(kind, 32), input = masters(kind);
      for (std::int64_t row = 0; row < kRows; ++row) {
        rows.encode({row, 0, kCols}, other.data(), {});
        rows.encode({row, 0, kCols}, input.data() + row * kCols, {});
      }
      CHECK(all_bytes(rows) == all_bytes(blocks));
      std::vector<float> masters_of_rows(input.size());
      for (std::int64_t row = 0; row < kRows; ++row) {
        rows.decode_master({row, 0, kCols}, masters_of_rows.data() + row * kCols);
      }
      const std::vector<double> expected = decoded(blocks, true);
      CHECK(std::equal(masters_of_rows.begin(), masters_of_rows.end(), expected.begin()));
    }
  }
  // bf16, split24, companded8 and root8 to nearest, split32 and scale16 with either rounding.
  CHECK(formats == 8);
}

TEST_CASE("format traits: who descends by encoding may be given the new master") {
  int formats = 0;
  for (FormatKind kind : formats_for(kWeight | kScale | kM | kV)) {
    if (!format_traits(kind).descends_by_encoding) continue;
    CAPTURE(std::string(format_name(kind)));
    ++formats;
    const std::vector<float> direction = numbers(kRows * kCols, 33);
    for (Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {
      Storage descended = storage_of(kind, rounding), encoded = storage_of(kind, rounding);
      descend(descended, direction, kSmallStep);
      for_each_block(encoded.shape(), [&](const Block& block) {
        std::array<float, kBlock> master;
        encoded.decode_master(block, master.data());
        const float* against = direction.data() + block.row * kCols + block.col;
        kernels().updates.descend(master.data(), against, kSmallStep, block.n);
        encoded.encode(block, master.data(), kKey);
      });
      CHECK(all_bytes(descended) == all_bytes(encoded));
    }
  }
  CHECK(formats == 6);
}

TEST_CASE("format traits: ternary values are trits, or trits times one number") {
  for (FormatKind kind : formats_for(kWeight)) {
    CAPTURE(std::string(format_name(kind)));
    const Storage storage = storage_of(kind, Rounding::kNearest);
    const std::vector<double> values = decoded(storage);
    double size = 0.0;
    for (double value : values) size = std::max(size, std::abs(value));
    const bool ternary = std::all_of(values.begin(), values.end(), [&](double value) {
      return value == 0.0 || std::abs(value) == size;
    });
    CHECK(format_traits(kind).is_ternary == ternary);
    CHECK(format_traits(kind).holds_trits == (ternary && size == 1.0));
    std::array<std::int8_t, kBlock> trits;
    const auto decode = [&] { decode_trits(storage, Block{0, 0, kBlock}, trits.data()); };
    if (format_traits(kind).holds_trits) {
      CHECK_NOTHROW(decode());
    } else {
      CHECK_THROWS_AS(decode(), Error);
    }
  }
}

TEST_CASE("format traits: rounding changes the updates of formats that say so, and no others") {
  for (FormatKind kind : formats_for(kWeight | kScale)) {
    CAPTURE(std::string(format_name(kind)));
    // Both from the same bytes.
    Storage nearest = storage_of(kind, Rounding::kNearest);
    Storage stochastic(spec_of(kind, Rounding::kStochastic), {kRows, kCols}, Category::kWeights);
    for (std::size_t i = 0; i < nearest.planes().size(); ++i) {
      const Plane from = nearest.planes()[i], to = stochastic.planes()[i];
      std::copy(from.bytes.begin(), from.bytes.end(), to.bytes.begin());
    }
    const std::vector<float> direction = numbers(kRows * kCols, 34);
    descend(nearest, direction, kSmallStep);
    descend(stochastic, direction, kSmallStep);
    CHECK(format_traits(kind).rounds_updates == (all_bytes(nearest) != all_bytes(stochastic)));
  }
}

TEST_CASE("format traits: the master is more than the value where there is a residual") {
  for (FormatKind kind : formats_for(kWeight | kScale)) {
    if (kind == FormatKind::kFp32) continue;  // of which it is not asked
    CAPTURE(std::string(format_name(kind)));
    Storage storage = storage_of(kind, Rounding::kNearest);
    descend(storage, numbers(kRows * kCols, 35), 0x1p-2f);
    const bool differ = decoded(storage, true) != decoded(storage);
    CHECK(format_traits(kind).has_residual == differ);
  }
}

}  // namespace tritgrad::test::test_format_traits
