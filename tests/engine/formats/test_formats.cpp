// What every format promises, checked over all states where there are few enough to list.
#include <bit>
#include <cstring>
#include <set>

#include "engine/formats/half_precision.h"
#include "engine/kernels/direction.h"
#include "engine/kernels/reductions.h"
#include "tests/support/support.h"
#include "tests/support/support_formats.h"

namespace tritgrad::test::test_formats {
namespace {

// All that keep elements; those that keep sums have tests of their own (test_moment_formats.cpp).
const std::vector<FormatKind> kElementFormats = formats_for(kWeight | kScale | kM | kV);

// Shapes at the edges of bytes and blocks: columns 1..6, 319..321, 640 and a tall thin one.
const std::vector<Shape> kShapes = {{1, 1},   {3, 2},   {2, 4},   {2, 5},   {5, 6}, {3, 319},
                                    {2, 320}, {3, 321}, {2, 640}, {1, 647}, {33, 7}};

// Within (-1.49, 1.49); above zero for formats that hold nothing else.
std::vector<float> masters(FormatKind kind, std::int64_t n) {
  std::vector<float> values = numbers(n, 21);
  for (float& v : values) {
    v *= 1.49f;
    if (kind == FormatKind::kScale16 || kind == FormatKind::kRoot8) v = std::abs(v) + 0.01f;
  }
  return values;
}

// Half a step of the format's grid around x, for x within the format's range.
double half_step(FormatKind kind, double x) {
  switch (kind) {
    case FormatKind::kBf16:  // 8 significant bits: half a unit in the last place is 2^-8 of the
                             // binade's begin
      return std::ldexp(1.0, std::ilogb(x == 0.0 ? 1e-30 : x) - 8);
    case FormatKind::kTernary:
    case FormatKind::kLatent8:
      // Levels are 1/85 apart; the float product master * 85 may err by 2^-24 relative at a tie.
      return 0.5 / 85.0 * (1.0 + 1e-4);
    case FormatKind::kTrits:
    case FormatKind::kShared4:
    case FormatKind::kShared8:
    case FormatKind::kShared16:
      return 0.5;
    // Half a 127th or 32767th of bf16's half step, that of the power of two for what rounds up to
    // it, and the rounding to fp32.
    case FormatKind::kSplit24:
      return std::ldexp(0.5 / 127.0 + 0x1p-16, std::ilogb(x * (1.0 + 0x1p-8)) - 8);
    case FormatKind::kSplit32:
      return std::ldexp(0.5 / 32767.0 + 0x1p-16, std::ilogb(x * (1.0 + 0x1p-8)) - 8);
    // Scales are at most 1.5, rounded by 2^-9 of it. The widest half of a step is the last one,
    // from the code 126.5, or 254.5, up; what is above a scale that was rounded down is but 2^-9
    // away.
    case FormatKind::kCompanded8:
      return 1.5 * (1.0 + 0x1p-9) * (1.0 - 126.5 / 127.5) * (1.0 + 1e-4);
    case FormatKind::kRoot8:
      return 1.5 * (1.0 + 0x1p-9) * (1.0 - 254.5 * 254.5 / 65025.0) * (1.0 + 1e-4);
    case FormatKind::kLatent6:
      return 0.5 / 21.0 * (1.0 + 1e-4);
    case FormatKind::kLatent5:  // its masters end at 15 / 11
      return std::max(0.5 / 11.0, std::abs(x) - 15.0 / 11.0) * (1.0 + 1e-4);
    case FormatKind::kLatent4:  // its masters end at 7 / 5
      return std::max(0.5 / 5.0, std::abs(x) - 7.0 / 5.0) * (1.0 + 1e-4);
    // Scales are at most 1.49 / top code, rounded by 2^-8; quotients in fp32 err by 2^-24 at a tie.
    case FormatKind::kInt8:
      return 0.5 * 1.49 / 127.0 * (1.0 + 0x1p-8) * (1.0 + 1e-4);
    case FormatKind::kInt4:
      return 0.5 * 1.49 / 7.0 * (1.0 + 0x1p-8) * (1.0 + 1e-4);
    case FormatKind::kFp8:  // 4 significant bits: half a place is 1/16 at most; subnormals of 2^-9
      return std::max(std::abs(x) / 16.0, 0x1p-10 * 1.49 / 448.0 * (1.0 + 0x1p-8)) * (1.0 + 1e-4);
    default:
      return 0.0;
  }
}

}  // namespace

TEST_CASE(
    "formats: |master - input| is within half a step; encode of decode_master is the identity") {
  for (FormatKind kind : kElementFormats) {
    for (const Shape& shape : kShapes) {
      CAPTURE(std::string(format_name(kind)));
      CAPTURE(shape.str());
      Storage storage(spec_of(kind), shape, Category::kWeights);
      const std::vector<float> input = masters(kind, shape.size());
      encode_all(storage, input);
      const std::vector<double> master = decoded(storage, true);
      for (std::size_t i = 0; i < input.size(); ++i) {
        const double x = static_cast<double>(input[i]);
        REQUIRE(std::abs(master[i] - x) <= half_step(kind, x));
      }
      const std::vector<std::byte> bytes = all_bytes(storage);
      encode_all(storage, {master.begin(), master.end()});
      CHECK(all_bytes(storage) == bytes);
    }
  }
}

TEST_CASE("formats: the value depends on inference planes only") {
  for (FormatKind kind : kElementFormats) {
    CAPTURE(std::string(format_name(kind)));
    Storage storage(spec_of(kind), {3, 323}, Category::kWeights);
    encode_all(storage, masters(kind, 3 * 323));
    const std::vector<double> before = decoded(storage);
    for (const Plane& plane : storage.planes()) {
      if (plane.spec.inference) continue;
      std::fill(plane.bytes.begin(), plane.bytes.end(), std::byte{13});
    }
    CHECK(decoded(storage) == before);
  }
}

TEST_CASE("formats: forecast planes equal the bytes that are really held") {
  for (FormatKind kind : kElementFormats) {
    for (const Shape& shape : kShapes) {
      CAPTURE(std::string(format_name(kind)));
      CAPTURE(shape.str());
      std::array<std::int64_t, kCategoryCount> before{};
      for (int c = 0; c < kCategoryCount; ++c)
        before[static_cast<std::size_t>(c)] = ledger::live(static_cast<Category>(c));
      const Storage storage(spec_of(kind), shape, Category::kWeights);
      std::array<std::int64_t, kCategoryCount> forecast{};
      const auto specs = Storage::plane_specs(spec_of(kind), shape, Category::kWeights);
      const auto planes = storage.planes();
      REQUIRE(specs.size() == planes.size());
      for (std::size_t i = 0; i < specs.size(); ++i) {
        forecast[static_cast<std::size_t>(specs[i].category)] += specs[i].bytes();
        CHECK(static_cast<std::int64_t>(planes[i].bytes.size()) == specs[i].bytes());
      }
      for (std::size_t c = 0; c < kCategoryCount; ++c) {
        CHECK(ledger::live(static_cast<Category>(c)) - before[c] == forecast[c]);
      }
    }
  }
}

TEST_CASE("formats: bytes per weight are what FORMATS.md says") {
  const Shape shape{512, 784};
  const auto bytes = [&](FormatKind kind) {
    return static_cast<double>(bytes_of(Storage(spec_of(kind), shape, Category::kWeights))) /
           static_cast<double>(shape.size());
  };
  CHECK(bytes(FormatKind::kFp32) == 4.0);
  CHECK(bytes(FormatKind::kBf16) == 2.0);
  CHECK(bytes(FormatKind::kLatent8) == 1.0);
  CHECK(bytes(FormatKind::kTernary) == doctest::Approx(1.0 + 157.0 / 784.0));
  CHECK(bytes(FormatKind::kTrits) == doctest::Approx(157.0 / 784.0));
  CHECK(bytes(FormatKind::kSplit24) == 3.0);
  CHECK(bytes(FormatKind::kSplit32) == 4.0);
  // A scale of 16 bits for 32 codes: 784 = 24.5 groups of 32, rounded up.
  CHECK(bytes(FormatKind::kCompanded8) == 1.0 + 2.0 * 25.0 / 784.0);
  CHECK(bytes(FormatKind::kRoot8) == bytes(FormatKind::kCompanded8));
  CHECK(bytes(FormatKind::kLatent6) == 0.75);
  CHECK(bytes(FormatKind::kLatent5) == 0.625);
  CHECK(bytes(FormatKind::kLatent4) == 0.5);
  CHECK(bytes(FormatKind::kShared4) == (157.0 + 196.0) / 784.0);
  CHECK(bytes(FormatKind::kShared8) == (157.0 + 98.0) / 784.0);
  CHECK(bytes(FormatKind::kShared16) == (157.0 + 49.0) / 784.0);
  // A row of 784 has 25 groups of 32 and 3 blocks of 320.
  CHECK(bytes(FormatKind::kInt8) == (784.0 + 2.0 * 25.0) / 784.0);
  CHECK(bytes(FormatKind::kInt4) == (392.0 + 2.0 * 25.0) / 784.0);
  CHECK(bytes(FormatKind::kFp8) == (784.0 + 2.0 * 3.0) / 784.0);
  CHECK(bytes(FormatKind::kTernaryMaster) == doctest::Approx(4.0).epsilon(1e-4));
}

TEST_CASE("formats: golden bytes of packed trits") {
  Storage storage(spec_of(FormatKind::kTernary), {1, 7}, Category::kWeights);
  // b = ceil(7 / 5) = 2 bytes; byte 0 holds elements 0, 2, 4, 6, byte 1 holds 1, 3, 5.
  encode_all(storage, {1.0f, -1.0f, 0.0f, 1.0f, -1.0f, 0.0f, 1.0f});
  const std::vector<Plane> planes = storage.planes();
  REQUIRE(planes[0].bytes.size() == 2);
  CHECK(static_cast<int>(planes[0].bytes[0]) == 2 + 3 * 1 + 9 * 0 + 27 * 2 + 81 * 1);
  CHECK(static_cast<int>(planes[0].bytes[1]) == 0 + 3 * 2 + 9 * 1 + 27 * 1 + 81 * 1);
}

TEST_CASE("formats: all 255 latent codes, all 255 states of trit and accumulator") {
  for (int code = -127; code <= 127; ++code) {
    CAPTURE(code);
    const float master = static_cast<float>(code) / 85.0f;
    const double value = code > 42 ? 1.0 : code < -42 ? -1.0 : 0.0;
    for (FormatKind kind : {FormatKind::kLatent8, FormatKind::kTernary}) {
      Storage storage(spec_of(kind), {1, 1}, Category::kWeights);
      encode_all(storage, {master});
      CHECK(decoded(storage)[0] == value);
      CHECK(std::lrint(decoded(storage, true)[0] * 85.0) == code);
    }
  }
}

TEST_CASE("formats: stochastic bf16 rounds to the two neighbours with the right mean") {
  FormatSpec spec = spec_of(FormatKind::kBf16);
  spec.rounding = Rounding::kStochastic;
  constexpr std::int64_t kN = 64000;
  Storage storage(spec, {200, kN / 200}, Category::kWeights);
  const float x = 1.0f + 0.3f / 128.0f;  // neighbours 1 and 1 + 1/128
  encode_all(storage, std::vector<float>(kN, x));
  double up = 0.0;
  for (double v : decoded(storage)) {
    REQUIRE((v == 1.0 || v == 1.0 + 1.0 / 128.0));
    up += v > 1.0;
  }
  // Binomial: the share of 0.3 has standard deviation sqrt(.21 / 64000) = .0018; five of them.
  CHECK(std::abs(up / kN - 0.3) < 0.009);
}

TEST_CASE("formats: the absmean scale of ternary_master is BitNet's; zero tensors keep a scale") {
  Storage storage(spec_of(FormatKind::kTernaryMaster), {2, 2}, Category::kWeights);
  encode_all(storage, {0.1f, -0.5f, 0.9f, 0.3f});  // gamma = 0.45
  const std::vector<double> value = decoded(storage);
  const double gamma = 0.45;
  CHECK(value[0] == 0.0);
  CHECK(value[1] == doctest::Approx(-gamma));
  CHECK(value[2] == doctest::Approx(gamma));
  CHECK(value[3] == doctest::Approx(gamma));
  encode_all(storage,
             {0.5f, -0.5f, 1.5f, std::nextafter(1.5f, 2.0f)});  // gamma = 1 (rounded), two ties
  CHECK(decoded(storage) == std::vector<double>{0.0, 0.0, 1.0, 1.0});
  encode_all(storage, {0.0f, 0.0f, 0.0f, 0.0f});
  for (double v : decoded(storage)) CHECK(v == 0.0);
}

TEST_CASE("formats: scale16 is positive, exact in fp16, and keeps what rounding hides") {
  Storage storage(spec_of(FormatKind::kScale16), {1, 4}, Category::kScales);
  encode_all(storage, {0.1f, -3.0f, 1e9f, 1.0f});
  const std::vector<double> value = decoded(storage);
  CHECK(value[0] == 0.0999755859375);  // nearest fp16 to 0.1
  CHECK(value[1] == 0x1p-14);
  CHECK(value[2] == 65504.0);
  const float down[] = {0.0f, 0.0f, 0.0f, 1.0f};
  for (int i = 0; i < 100; ++i) descend_block(storage, {0, 0, 4}, down, {1e-5f, {}});
  CHECK(decoded(storage)[3] < 1.0);  // 100 steps below half a unit add up
}

TEST_CASE("formats: round_to_half is exact for every fp16 number and rounds ties to even") {
  for (std::uint32_t exponent = 113; exponent <= 142; ++exponent) {  // 2^-14 .. 2^15
    for (std::uint32_t mantissa = 0; mantissa < 1024; ++mantissa) {
      const float x = std::bit_cast<float>(exponent << 23 | mantissa << 13);
      REQUIRE(round_to_half(x) == x);
      const float tie = std::bit_cast<float>(exponent << 23 | mantissa << 13 | 1u << 12);
      const float even = std::bit_cast<float>((exponent << 23 | mantissa << 13) +
                                              (mantissa % 2 == 1 ? 1u << 13 : 0u));
      REQUIRE(round_to_half(tie) == even);
    }
  }
}

TEST_CASE("formats: a zero direction changes nothing, whatever the rounding") {
  for (FormatKind kind : kElementFormats) {
    for (Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {
      CAPTURE(std::string(format_name(kind)));
      FormatSpec spec = spec_of(kind);
      spec.rounding = rounding;
      Storage storage(spec, {3, 321}, Category::kWeights);
      encode_all(storage, masters(kind, 3 * 321));
      const std::vector<std::byte> before = all_bytes(storage);
      const std::vector<float> zero(kBlock, 0.0f);
      for (std::uint32_t step = 1; step <= 50; ++step) {
        for_each_block(storage.shape(), [&](const Block& block) {
          const FlipCounts counts =
              descend_block(storage, block, zero.data(), {0.5f, {9, 9, step}});
          CHECK(counts.flips == 0);
        });
      }
      CHECK(all_bytes(storage) == before);
    }
  }
}

// Blocks below each other, and blocks of one row, whose floats may be measured.
TEST_CASE("formats: blocks that are updated at once become what they become one by one") {
  constexpr std::int64_t kCount = kMostBlocksAtOnce, kCols = (kCount + 1) * kBlock + 1;
  const Shape shape{kCount + 2, kCols};
  const std::vector<float> grad = numbers(kCount * kBlock, 37);
  std::vector<std::int32_t> sums;
  for (float g : grad) sums.push_back(static_cast<std::int32_t>(g * 1000.0f));
  std::vector<Direction> mixed, floats;
  for (std::int32_t i = 0; i < kCount; ++i) {
    const float factor = 0.1f * static_cast<float>(i);
    const float* at = grad.data() + i * kBlock;
    const Direction kinds[] = {{at, factor}, {sums.data(), i, 0.001f}, {at, factor, true}};
    mixed.push_back(kinds[i % 3]);
    floats.emplace_back(at, factor);
  }
  const auto down = BlockSeries::Way::kDown, right = BlockSeries::Way::kRight;
  const BlockSeries series[] = {{{1, kBlock, kBlock}, down},
                                {{0, kCols - 1, 1}, down},
                                {{3, kBlock, kBlock}, right},
                                {{kCount + 1, 0, kBlock}, right}};
  for (FormatKind kind : kElementFormats) {
    CAPTURE(std::string(format_name(kind)));
    FormatSpec spec = spec_of(kind);
    spec.rounding = Rounding::kStochastic;
    Storage at_once(spec, shape, Category::kWeights), one_by_one(spec, shape, Category::kWeights);
    for (Storage* storage : {&at_once, &one_by_one}) {
      encode_all(*storage, masters(kind, shape.size()));
    }
    const Descent descent{0.5f, {9, 9, 1}};
    FlipCounts counts, expected;
    for (const BlockSeries& blocks : series) {
      std::array<double, kCount> squares, of_mixed;
      counts += at_once.descend({blocks, mixed, descent, of_mixed.data()});
      counts += at_once.descend({blocks, floats, descent, squares.data()});
      for (std::size_t i = 0; i < kCount; ++i) {
        expected += descend_block(one_by_one, blocks[i], mixed[i], descent);
        expected += descend_block(one_by_one, blocks[i], floats[i], descent);
        const std::int64_t n = blocks.first.n;
        CHECK(squares[i] == kernels().reductions.sum_of_squares(floats[i].floats, n));
        CHECK(of_mixed[i] == sum_of_squares(mixed[i], n));
        if (mixed[i].floats == nullptr) {
          const std::int64_t whole =
              kernels().reductions.sum_of_squared_sums(mixed[i].sums, mixed[i].correction, n);
          CHECK(of_mixed[i] == static_cast<double>(whole));
        }
      }
    }
    CHECK(all_bytes(at_once) == all_bytes(one_by_one));
    CHECK(counts.flips == expected.flips);
    CHECK(counts.rail_flips == expected.rail_flips);
  }
}

TEST_CASE(
    "formats: stochastic updates of latents are unbiased, ternary and latent8 are one arithmetic") {
  FormatSpec ternary = spec_of(FormatKind::kTernary);
  FormatSpec latent = spec_of(FormatKind::kLatent8);
  ternary.rounding = latent.rounding = Rounding::kStochastic;
  const Shape shape{40, 645};
  Storage a(ternary, shape, Category::kWeights);
  Storage b(latent, shape, Category::kWeights);
  const std::vector<float> direction = numbers(kBlock, 31);
  for (std::uint32_t step = 1; step <= 200; ++step) {
    for_each_block(shape, [&](const Block& block) {
      const Descent descent{0.02f, {3, 4, step}};
      const FlipCounts flips_a = descend_block(a, block, direction.data(), descent);
      const FlipCounts flips_b = descend_block(b, block, direction.data(), descent);
      REQUIRE(flips_a.flips == flips_b.flips);
      REQUIRE(flips_a.rail_flips == flips_b.rail_flips);
    });
    if (step != 20) continue;
    // Drift after 20 steps: -0.4 * direction, while nothing touches a rail (|drift| <= .4 < 1.49).
    // The mean over the 40 rows of one column errs by at most 20 * .5 levels / sqrt(12 * ...): each
    // rounding has variance <= 1/4 level^2, so the mean of 40 rows has deviation <= sqrt(20 / 4 /
    // 40) / 85.
    const std::vector<double> master = decoded(b, true);
    const double deviation = std::sqrt(20.0 / 4.0 / 40.0) / 85.0;
    for (std::int64_t j = 0; j < kBlock; ++j) {
      double mean = 0.0;
      for (std::int64_t i = 0; i < 40; ++i)
        mean += master[static_cast<std::size_t>(i * 645 + j)] / 40.0;
      REQUIRE(std::abs(mean + 0.4 * static_cast<double>(direction[static_cast<std::size_t>(j)])) <
              5.0 * deviation);
    }
  }
  CHECK(decoded(a) == decoded(b));
}

TEST_CASE("formats: names round-trip, unknown ones are refused with the nearest") {
  for (const FormatRow& row : kFormatRows) {
    CHECK(parse_format(format_name(row.kind)) == row.kind);
  }
  CHECK_THROWS_WITH_AS(parse_format("ternery"), "unknown format 'ternery'; did you mean 'ternary'?",
                       Error);
}

}  // namespace tritgrad::test::test_formats
