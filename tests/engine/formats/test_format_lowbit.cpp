// Formats of few bits: what they store, what rounding does to them, and what gets lost.
#include <algorithm>
#include <array>
#include <limits>

#include "engine/check.h"
#include "engine/formats/flips.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_format_lowbit {
namespace {}  // namespace

TEST_CASE("formats: trits are clipped and rounded, ties to even, NaN to zero") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> input = {-kInf, -1.5f, -0.51f, -0.5f, -0.0f, 0.0f,
                                    0.5f,  0.51f, 1.5f,   3e38f, kInf,  kNan};
  Storage storage(spec_of(FormatKind::kTrits), {1, 12}, Category::kWeights);
  encode_all(storage, input);
  CHECK(decoded(storage) == std::vector<double>{-1, -1, -1, 0, 0, 0, 0, 1, 1, 1, 1, 0});
  CHECK(decoded(storage, true) == decoded(storage));
}

TEST_CASE("formats: trits hold the bytes of ternary's plane") {
  for (std::int64_t cols : {1, 2, 3, 4, 5, 6, 319, 320, 321, 640, 647}) {
    Storage trits(spec_of(FormatKind::kTrits), {3, cols}, Category::kWeights);
    Storage ternary(spec_of(FormatKind::kTernary), {3, cols}, Category::kWeights);
    const auto same_plane = [&] {
      const auto a = trits.planes()[0].bytes, b = ternary.planes()[0].bytes;
      return std::equal(a.begin(), a.end(), b.begin(), b.end());
    };
    CHECK(same_plane());  // zero trits at the start
    std::vector<float> input = numbers(3 * cols, 5);
    for (float& x : input) x = std::nearbyint(1.49f * x);
    encode_all(trits, input);
    encode_all(ternary, input);
    CHECK(same_plane());
    CHECK(decoded(trits) == std::vector<double>(input.begin(), input.end()));
  }
}

TEST_CASE("formats: trits round stochastically with the right mean, for encode and for updates") {
  constexpr std::int64_t kN = 64000;
  const std::vector<float> direction(kBlock, 1.0f);
  for (float x : {-0.75f, -0.3f, 0.1f, 0.5f}) {
    CAPTURE(x);
    const auto mean_of = [&](const Storage& storage) {
      double sum = 0.0;
      for (double v : decoded(storage)) {
        REQUIRE((v == 0.0 || v == (x > 0.0f ? 1.0 : -1.0)));
        sum += v / kN;
      }
      return sum;
    };
    // Binomial: the deviation of a share is at most sqrt(.25 / 64000) = .002; five of them.
    Storage storage(spec_of(FormatKind::kTrits, Rounding::kStochastic), {200, kN / 200},
                    Category::kWeights);
    encode_all(storage, std::vector<float>(kN, x));
    CHECK(std::abs(mean_of(storage) - static_cast<double>(x)) < 0.01);

    encode_all(storage, std::vector<float>(kN, 0.0f));
    FlipCounts counts;
    for_each_block(storage.shape(), [&](const Block& block) {
      counts += descend_block(storage, block, direction.data(), {-x, {1, 2, 3}});
    });
    const double mean = mean_of(storage);
    CHECK(std::abs(mean - static_cast<double>(x)) < 0.01);
    CHECK(counts.flips == std::lrint(std::abs(mean) * kN));
    CHECK(counts.rail_flips == 0);
  }
}

TEST_CASE("formats: trits lose updates of half a trit when rounding to nearest, and count flips") {
  Storage storage(spec_of(FormatKind::kTrits), {1, 3}, Category::kWeights);
  const std::vector<float> start = {-1.0f, 0.0f, 1.0f};
  const std::array<float, 3> down = {1.0f, 1.0f, 1.0f};
  struct Step {
    float lr;
    std::vector<double> after;
    int flips, rail_flips;
  };
  const Step steps[] = {{0.0f, {-1, 0, 1}, 0, 0},    {0.5f, {-1, 0, 1}, 0, 0},
                        {-0.5f, {-1, 0, 1}, 0, 0},   {0.51f, {-1, -1, 0}, 2, 1},
                        {-0.51f, {0, 1, 1}, 2, 1},   {1.49f, {-1, -1, 0}, 2, 1},
                        {1.51f, {-1, -1, -1}, 2, 1}, {-1e30f, {1, 1, 1}, 2, 1}};
  for (const Step& step : steps) {
    CAPTURE(step.lr);
    encode_all(storage, start);
    FlipCounts counts;
    // What is lost is lost for good: many small updates are as good as none.
    for (int i = 0; i < (step.flips == 0 ? 100 : 1); ++i) {
      counts += descend_block(storage, {0, 0, 3}, down.data(), {step.lr, {}});
    }
    CHECK(decoded(storage) == step.after);
    CHECK(counts.flips == step.flips);
    CHECK(counts.rail_flips == step.rail_flips);
  }
}

// ---- latents of 6, 5 and 4 bits
// ------------------------------------------------------------------

struct LatentCase {
  FormatKind kind;
  int bits, threshold, max_code;
  int levels() const { return 2 * threshold + 1; }
  float master(int code) const { return static_cast<float>(code) / static_cast<float>(levels()); }
};
constexpr LatentCase kLatents[] = {{FormatKind::kLatent6, 6, 10, 31},
                                   {FormatKind::kLatent5, 5, 5, 15},
                                   {FormatKind::kLatent4, 4, 2, 7}};

// Returns what is stored, in levels.
std::vector<int> codes_of(const Storage& storage, const LatentCase& latent) {
  std::vector<int> codes;
  for (double m : decoded(storage, true)) {
    codes.push_back(static_cast<int>(std::lrint(m * latent.levels())));
    // One rounding of 1 / K and one of the product.
    REQUIRE(std::abs(m * latent.levels() - codes.back()) <= latent.max_code * 0x1p-23);
  }
  return codes;
}

TEST_CASE(
    "formats: every code of the packed latents comes back, beyond the ends they are clipped") {
  for (const LatentCase& latent : kLatents) {
    CAPTURE(latent.bits);
    const int n = 2 * latent.max_code + 1;
    std::vector<float> input;
    std::vector<int> codes;
    for (int code = -latent.max_code; code <= latent.max_code; ++code) {
      input.push_back(latent.master(code));
      codes.push_back(code);
    }
    Storage storage(spec_of(latent.kind), {1, n}, Category::kWeights);
    CHECK(codes_of(storage, latent) == std::vector<int>(codes.size(), 0));  // at the start
    encode_all(storage, input);
    CHECK(codes_of(storage, latent) == codes);
    const std::vector<double> values = decoded(storage);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      CHECK(values[i] == (codes[i] > latent.threshold) - (codes[i] < -latent.threshold));
      // Value and master never differ by more than half a trit.
      CHECK(std::abs(values[i] * latent.levels() - codes[i]) <= latent.threshold);
    }
    constexpr float kInf = std::numeric_limits<float>::infinity();
    Storage ends(spec_of(latent.kind), {1, 4}, Category::kWeights);
    encode_all(ends, {kInf, -3e38f, std::numeric_limits<float>::quiet_NaN(), 1.6f});
    CHECK(codes_of(ends, latent) ==
          std::vector<int>{latent.max_code, -latent.max_code, 0, latent.max_code});
  }
}

std::vector<int> plane_bytes(const Storage& storage, std::size_t plane = 0) {
  std::vector<int> bytes;
  const auto stored = storage.planes()[plane].bytes;
  for (std::byte b : stored) bytes.push_back(static_cast<int>(b));
  return bytes;
}

TEST_CASE("formats: golden bytes of packed latents and of int4") {
  // u = code + 2^(bits - 1). Five elements: nibbles of (0, 3), (1, 4), (2), then the bits above.
  const auto bytes = [](const LatentCase& latent, const std::vector<int>& codes) {
    Storage storage(spec_of(latent.kind), {1, std::ssize(codes)}, Category::kWeights);
    std::vector<float> input;
    for (int code : codes) input.push_back(latent.master(code));
    encode_all(storage, input);
    return plane_bytes(storage);
  };
  // u = 1, 63, 32, 27, 48; stripes of two bytes: (0, 2, 4) and (1, 3).
  CHECK(bytes(kLatents[0], {-31, 31, 0, -5, 16}) ==
        std::vector<int>{0xB1, 0x0F, 0x00, 0 + (2 << 2) + (3 << 4), 3 + (1 << 2)});
  CHECK(bytes(kLatents[0], {-31, 0, 31}) == std::vector<int>{0xF1, 0x00, 0x38});  // FORMATS.md
  // u = 1, 31, 16, 11, 20; one byte of bits.
  CHECK(bytes(kLatents[1], {-15, 15, 0, -5, 4}) == std::vector<int>{0xB1, 0x4F, 0x00, 0b10110});
  // u = 1, 15, 8, 3, 11.
  CHECK(bytes(kLatents[2], {-7, 7, 0, -5, 3}) == std::vector<int>{0x31, 0xBF, 0x08});

  Storage integers(spec_of(FormatKind::kInt4), {1, 5}, Category::kWeights);
  encode_all(integers, {-3.5f, 3.5f, 0.0f, -2.5f, 1.5f});  // scale 0.5
  CHECK(plane_bytes(integers) == std::vector<int>{0x31, 0xBF, 0x08});
  CHECK(plane_bytes(integers, 1) == std::vector<int>{0x00, 0x3F});
}

TEST_CASE("formats: any bytes read as legal codes") {
  for (const LatentCase& latent : kLatents) {
    Storage storage(spec_of(latent.kind), {2, 647}, Category::kWeights);
    const auto bytes = storage.planes()[0].bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 151 % 256);
    for (int code : codes_of(storage, latent)) REQUIRE(std::abs(code) <= latent.max_code);
  }
  for (FormatKind kind : {FormatKind::kInt4, FormatKind::kInt8}) {
    Storage storage(spec_of(kind), {1, 320}, Category::kWeights);
    encode_all(storage, std::vector<float>(320, 1.0f));
    const auto bytes = storage.planes()[0].bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
    for (double v : decoded(storage)) REQUIRE(std::abs(v) <= 1.0 + 0x1p-8);
  }
}

TEST_CASE("formats: updates of packed latents are accumulate() of flips.h, up to their last code") {
  for (const LatentCase& latent : kLatents) {
    const int n = 2 * latent.max_code + 1;
    for (int hysteresis = 0; hysteresis <= latent.threshold; ++hysteresis) {
      FormatSpec spec = spec_of(latent.kind);
      spec.flips.hysteresis = hysteresis;
      Storage storage(spec, {1, n}, Category::kWeights);
      FlipPolicy policy;
      policy.threshold = latent.threshold;
      policy.hysteresis = hysteresis;
      std::vector<float> start;
      for (int code = -latent.max_code; code <= latent.max_code; ++code) {
        start.push_back(latent.master(code));
      }
      for (int level = -latent.levels() - 2; level <= latent.levels() + 2; ++level) {
        // At most one trit in one go.
        const int clipped = std::clamp(level, -latent.levels(), latent.levels());
        std::vector<int> expected;
        FlipCounts expected_counts;
        for (int code = -latent.max_code; code <= latent.max_code; ++code) {
          const TritState next =
              accumulate(split_code(code, latent.threshold), clipped, policy, expected_counts);
          const int next_code = next.trit * latent.levels() + next.accumulator;
          expected.push_back(std::clamp(next_code, -latent.max_code, latent.max_code));
        }
        encode_all(storage, start);
        const std::vector<float> direction(start.size(), -latent.master(level));
        const FlipCounts counts = descend_block(storage, {0, 0, n}, direction.data(), {1.0f, {}});
        CAPTURE(latent.bits);
        CAPTURE(level);
        CAPTURE(hysteresis);
        REQUIRE(codes_of(storage, latent) == expected);
        REQUIRE(counts.flips == expected_counts.flips);
        REQUIRE(counts.rail_flips == expected_counts.rail_flips);
      }
    }
    FormatSpec spec = spec_of(latent.kind);
    spec.flips.hysteresis = latent.threshold + 1;
    CHECK_THROWS_AS(Storage(spec, {1, 1}, Category::kWeights), Error);
  }
}

TEST_CASE("formats: stochastic updates of packed latents are unbiased") {
  for (const LatentCase& latent : kLatents) {
    CAPTURE(latent.bits);
    constexpr std::int64_t kRows = 60, kCols = 645;
    Storage storage(spec_of(latent.kind, Rounding::kStochastic), {kRows, kCols},
                    Category::kWeights);
    const std::vector<float> direction = numbers(kBlock, 31);
    for (std::uint32_t step = 1; step <= 20; ++step) {
      for_each_block(storage.shape(), [&](const Block& block) {
        descend_block(storage, block, direction.data(), {0.02f, {3, 4, step}});
      });
    }
    // The drift of -0.4 direction and its spread stay off the rails (1.36 trits and more). A
    // rounding has a variance of at most a quarter of a level squared, 20 of them in a mean of 60
    // rows.
    const double deviation = std::sqrt(20.0 / 4.0 / kRows) / latent.levels();
    const std::vector<double> master = decoded(storage, true);
    for (std::int64_t j = 0; j < kBlock; ++j) {
      double mean = 0.0;
      for (std::int64_t i = 0; i < kRows; ++i) {
        mean += master[static_cast<std::size_t>(i * kCols + j)] / kRows;
      }
      const double drift = -0.4 * static_cast<double>(direction[static_cast<std::size_t>(j)]);
      REQUIRE(std::abs(mean - drift) < 5.0 * deviation);
    }
  }
}

// ---- int8, int4, fp8
// -----------------------------------------------------------------------------

constexpr FormatKind kDense[] = {FormatKind::kInt8, FormatKind::kInt4, FormatKind::kFp8};

TEST_CASE("formats: numbers with shared scales are stored without bias by stochastic rounding") {
  constexpr std::int64_t kRows = 400, kCols = 325;
  for (FormatKind kind : kDense) {
    CAPTURE(std::string(format_name(kind)));
    Storage storage(spec_of(kind, Rounding::kStochastic), {kRows, kCols}, Category::kWeights);
    const std::vector<float> row = numbers(kCols, 8);
    std::vector<float> input;
    for (std::int64_t i = 0; i < kRows; ++i) input.insert(input.end(), row.begin(), row.end());
    encode_all(storage, input);
    const std::vector<double> stored = decoded(storage);
    // Steps are at most the largest scale (fp8: an eighth of the number at the top), the deviation
    // of a rounding half of that; the same numbers stand in all rows.
    const double step = kind == FormatKind::kInt8   ? 1.0 / 127.0
                        : kind == FormatKind::kInt4 ? 1.0 / 7.0
                                                    : 1.0 / 8.0;
    const double deviation = 0.5 * step * (1.0 + 0x1p-7) / std::sqrt(kRows);
    for (std::int64_t j = 0; j < kCols; ++j) {
      const double x = static_cast<double>(row[static_cast<std::size_t>(j)]);
      double mean = 0.0;
      for (std::int64_t i = 0; i < kRows; ++i) {
        const double value = stored[static_cast<std::size_t>(i * kCols + j)];
        REQUIRE(std::abs(value - x) <= step * (1.0 + 0x1p-7));
        mean += value / kRows;
      }
      REQUIRE(std::abs(mean - x) < 5.0 * deviation);
    }
  }
}

TEST_CASE("formats: fp8_master and int4_master read as fp8 and int4 of masters that keep all") {
  for (const FormatKind kind : {FormatKind::kFp8Master, FormatKind::kInt4Master}) {
    CAPTURE(std::string(format_name(kind)));
    const FormatKind rounded =
        kind == FormatKind::kFp8Master ? FormatKind::kFp8 : FormatKind::kInt4;
    const Shape shape{3, 353};  // the second block of a row ends within a group
    Storage storage(spec_of(kind), shape, Category::kWeights);
    Storage numbers_of_few_bits(spec_of(rounded), shape, Category::kWeights);
    CHECK(decoded(storage) == std::vector<double>(static_cast<std::size_t>(shape.size()), 0.0));
    std::vector<float> input = numbers(shape.size(), 12);
    encode_all(storage, input);
    encode_all(numbers_of_few_bits, input);
    CHECK(decoded(storage) == decoded(numbers_of_few_bits));
    CHECK(decoded(storage, true) == std::vector<double>(input.begin(), input.end()));
    CHECK(decoded(storage) != decoded(storage, true));
    // 16 steps, each far below half a step of the grid around 1, are lost by rounding alone.
    std::fill(input.begin(), input.end(), 1.0f);
    encode_all(storage, input);
    encode_all(numbers_of_few_bits, input);
    std::vector<float> direction(static_cast<std::size_t>(shape.cols()), 1.0f);
    direction[0] = direction[kBlock] = 0.0f;  // keep the scale of their group, or block
    for (std::uint32_t step = 1; step <= 16; ++step) {
      for (Storage* each : {&storage, &numbers_of_few_bits}) {
        for_each_block(shape, [&](const Block& block) {
          descend_block(*each, block, direction.data() + block.col, {0x1p-6f, {1, 1, step}});
        });
      }
    }
    CHECK(decoded(storage, true)[1] == 0.75);
    CHECK(std::abs(decoded(storage)[1] - 0.75) <= 0.5 / 7.0);
    CHECK(std::abs(decoded(numbers_of_few_bits)[1] - 1.0) <= 0x1p-8);
  }
}

TEST_CASE("formats: a large number costs precision in its own group only") {
  for (FormatKind kind : {FormatKind::kInt8, FormatKind::kInt4}) {
    Storage storage(spec_of(kind), {2, 353}, Category::kWeights);
    std::vector<float> input(2 * 353, 0.5f);
    input[353 + 64] = 1e6f;  // row 1, group 2: elements 64..95
    encode_all(storage, input);
    const std::vector<double> stored = decoded(storage);
    for (std::size_t i = 0; i < stored.size(); ++i) {
      CAPTURE(i);
      if (i == 353 + 64) {
        CHECK(std::abs(stored[i] - 1e6) <= 1e6 * 0x1p-8);
      } else if (i > 353 + 64 && i < 353 + 96) {
        CHECK(stored[i] == 0.0);
      } else {
        CHECK(std::abs(stored[i] - 0.5) <= 0.5 * 0x1p-8);
      }
    }
  }
}

TEST_CASE("formats: an update of int8 and int4 leaves groups alone in which nothing moves") {
  for (FormatKind kind : {FormatKind::kInt8, FormatKind::kInt4}) {
    // Stochastic rounding leaves groups without a top code; writing them again would move them.
    Storage storage(spec_of(kind, Rounding::kStochastic), {1, 325}, Category::kWeights);
    encode_all(storage, numbers(325, 4));
    const std::vector<double> before = decoded(storage);
    std::vector<float> direction(325, 0.0f);
    direction[70] = 1.0f;
    for (std::uint32_t step = 1; step <= 20; ++step) {
      for_each_block(storage.shape(), [&](const Block& block) {
        descend_block(storage, block, direction.data() + block.col, {0.05f, {1, 1, step}});
      });
    }
    const std::vector<double> after = decoded(storage);
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (i < 64 || i >= 96) REQUIRE(after[i] == before[i]);
    }
    CHECK(std::abs(after[70] - before[70] + 1.0) < 0.8);
  }
}

TEST_CASE("formats: what shared scales make of infinities, NaN and the smallest numbers") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (FormatKind kind : kDense) {
    for (Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {
      CAPTURE(std::string(format_name(kind)));
      Storage storage(spec_of(kind, rounding), {1, 4}, Category::kWeights);
      CHECK(decoded(storage) == std::vector<double>(4, 0.0));
      encode_all(storage, {kInf, -kInf, 0.0f, 0.0f});
      const std::vector<double> ends = decoded(storage);
      CHECK((ends[0] > 3.37e38 && ends[0] <= double{std::numeric_limits<float>::max()}));
      CHECK((ends[1] == -ends[0] && ends[2] == 0.0));
      encode_all(storage, {kNan, 7.0f, -7.0f, 0.0f});
      const std::vector<double> rest = decoded(storage);
      CHECK(std::isnan(rest[0]) == (kind == FormatKind::kFp8));
      if (kind != FormatKind::kFp8) CHECK(rest[0] == 0.0);
      CHECK(std::abs(rest[1] - 7.0) <= 7.0 * 0x1p-6);
      encode_all(storage, {1e-37f, -1e-40f, 0.0f, 0.0f});
      for (double v : decoded(storage)) CHECK(std::abs(v) <= 2e-37);
    }
  }
}

}  // namespace tritgrad::test::test_format_lowbit
