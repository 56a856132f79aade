// split24 and split32 against their definition, over all mantissas of the binades where something
// changes, and all pairs of value and correction.
#include <bit>
#include <cmath>
#include <limits>

#include "engine/kernels/codecs.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_format_split {
namespace {

constexpr int kN8 = 127;
constexpr int kN16 = 32767;
constexpr std::size_t kChunk = 65536;  // mantissas that share their upper bits

float bf16_number(std::uint32_t bits) { return std::bit_cast<float>(bits << 16); }

std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

// Ties to even; x must stay finite.
std::uint32_t nearest_bf16(float x) {
  return (bits_of(x) + 0x7FFFu + (bits_of(x) >> 16 & 1u)) >> 16;
}

// Half the distance from a bf16 number to its neighbour, outwards or towards zero.
double half_way(std::uint32_t bits, bool outwards) {
  const int exponent = static_cast<int>(bits >> 7 & 0xFFu);
  const bool is_finer_below = exponent > 1 && (bits & 0x7Fu) == 0;
  const double half = std::ldexp(1.0, std::max(exponent, 1) - 127 - 8);
  return !outwards && is_finer_below ? half / 2.0 : half;
}

// The definition. In double, code / N * half the way and the sum err by 2^-52 of it or less; the
// exact sum lies at least 1 / (2 N) of 2^-15 of it away from where fp32 would round the other way,
// so the one rounding to fp32 is right.
float definition(std::uint32_t value, int code, int codes) {
  const bool outwards = (code < 0) == (value > 0x7FFFu);
  return static_cast<float>(double{bf16_number(value)} +
                            static_cast<double>(code) / codes * half_way(value, outwards));
}

struct Encoded {
  explicit Encoded(std::size_t n = 1) : value8(n), value16(n), code8(n), code16(n) {}

  void encode(const std::vector<float>& in, const std::uint16_t* noise = nullptr) {
    const auto n = static_cast<std::int64_t>(in.size());
    kernels().codecs.encode_split8(value8.data(), code8.data(), in.data(), noise, n);
    kernels().codecs.encode_split16(value16.data(), code16.data(), in.data(), n);
  }
  void decode(std::vector<float>& out8, std::vector<float>& out16) const {
    const auto n = static_cast<std::int64_t>(value8.size());
    kernels().codecs.decode_split8(out8.data(), value8.data(), code8.data(), n);
    kernels().codecs.decode_split16(out16.data(), value16.data(), code16.data(), n);
  }

  std::vector<std::uint16_t> value8, value16;
  std::vector<std::int8_t> code8;
  std::vector<std::int16_t> code16;
};

// What the masters of one binade come to. The counts of violated invariants are zero unless said
// otherwise.
struct Tally {
  std::int64_t exact8 = 0, exact16 = 0;
  std::int64_t not_idempotent = 0;       // encode(decode(encode(x))) differs from encode(x)
  std::int64_t not_mirrored = 0;         // encode(-x) is not encode(x) with the other signs
  std::int64_t value_not_nearest = 0;    // value differs from the nearest bf16 of the master
  std::int64_t moved_value = 0;          // value differs from the nearest bf16 of x
  std::int64_t inexact_downcast = 0;     // x is a bf16 number, yet one decodes to something else
  std::int64_t exact8_not_16 = 0;        // split24 is exact where split32 is not
  std::int64_t worse16 = 0;              // split32 errs more than split24
  std::int64_t not_better16 = 0;         // split32 errs as much, where split24 errs
  std::int64_t loose8 = 0, loose16 = 0;  // error stays >= 1/N of x although the downcast's was
  double worst8 = 0.0, worst16 = 0.0;    // relative error

  void add(float x, float master8, float master16) {
    const double exact = double{x};
    const double error8 = std::fabs(double{master8} - exact);
    const double error16 = std::fabs(double{master16} - exact);
    exact8 += error8 == 0.0;
    exact16 += error16 == 0.0;
    exact8_not_16 += error8 == 0.0 && error16 != 0.0;
    worse16 += error16 > error8;
    not_better16 += error8 > 0.0 && error16 >= error8;
    inexact_downcast += (bits_of(x) & 0xFFFFu) == 0 && (master8 != x || master16 != x);
    if (x == 0.0f) return;
    const double relative = 1.0 / std::fabs(exact);
    const double narrow = std::fabs(double{bf16_number(nearest_bf16(x))} - exact) * relative;
    loose8 += narrow >= 1.0 / kN8 && error8 * relative >= 1.0 / kN8;
    loose16 += narrow >= 1.0 / kN16 && error16 * relative >= 1.0 / kN16;
    worst8 = std::max(worst8, error8 * relative);
    worst16 = std::max(worst16, error16 * relative);
  }
};

// All numbers with these upper 16 bits and a lower half of at most `last`.
void add_chunk(Tally& tally, std::uint32_t upper, std::uint32_t last) {
  static std::vector<float> x(kChunk), master8(kChunk), master16(kChunk);
  static std::vector<std::uint16_t> noise(kChunk);
  static Encoded once(kChunk), again(kChunk);
  for (std::uint32_t i = 0; i < kChunk; ++i) {
    x[i] = std::bit_cast<float>(upper << 16 | i);
    noise[i] = static_cast<std::uint16_t>(i * 40503u);
  }
  once.encode(x);
  once.decode(master8, master16);
  for (std::size_t i = 0; i <= last; ++i) {
    tally.add(x[i], master8[i], master16[i]);
    tally.moved_value += nearest_bf16(x[i]) != once.value8[i];
    tally.value_not_nearest +=
        nearest_bf16(master8[i]) != once.value8[i] || nearest_bf16(master16[i]) != once.value16[i];
  }
  for (float& number : x) number = -number;
  again.encode(x);
  for (std::size_t i = 0; i < kChunk; ++i) {
    tally.not_mirrored +=
        again.value8[i] != (once.value8[i] | 0x8000) || again.code8[i] != -once.code8[i] ||
        again.value16[i] != (once.value16[i] | 0x8000) || again.code16[i] != -once.code16[i];
  }
  const auto count_changed = [&] {
    for (std::size_t i = 0; i < kChunk; ++i) {
      tally.not_idempotent += again.value8[i] != once.value8[i] || again.code8[i] != once.code8[i];
    }
  };
  again.encode(master8);
  count_changed();
  again.encode(master8, noise.data());
  count_changed();
  again.encode(master16);
  for (std::size_t i = 0; i < kChunk; ++i) {
    tally.not_idempotent +=
        again.value16[i] != once.value16[i] || again.code16[i] != once.code16[i];
  }
}

// All 2^23 mantissas of one exponent, or all that have a finite nearest bf16 number.
Tally binade(std::uint32_t exponent) {
  Tally tally;
  for (std::uint32_t upper = 0; upper < 128; ++upper) {
    const std::uint32_t last = exponent == 254 && upper == 127 ? 0x7FFFu : 0xFFFFu;
    add_chunk(tally, exponent << 7 | upper, last);
  }
  return tally;
}

constexpr std::int64_t kMantissas = 1 << 23;

TEST_CASE("split: invariants hold for every mantissa of the binades where something changes") {
  for (std::uint32_t exponent : {0u, 1u, 127u, 254u}) {
    CAPTURE(exponent);
    const Tally tally = binade(exponent);
    CHECK(tally.not_mirrored == 0);
    CHECK(tally.not_idempotent == 0);
    CHECK(tally.value_not_nearest == 0);
    CHECK(tally.inexact_downcast == 0);
    // Only half a step of the correction, 32768 / 254 fp32 units, around each of 128 ties.
    CHECK(tally.moved_value <= 128 * 129);
    const bool is_subnormal = exponent == 0;
    CHECK(tally.exact8_not_16 == 0);
    CHECK(tally.worse16 == 0);
    CHECK(tally.not_better16 == 0);
    // Steps of split24 are 258 of the smallest units, so below 127 half steps, 16383 units, every
    // other number errs by 1/127 or more. split32 errs by one unit, 16384 from zero.
    CHECK(tally.loose8 <= (is_subnormal ? 8192 : 0));
    CHECK(tally.loose16 == (is_subnormal ? 1 : 0));
    if (!is_subnormal) {
      // Half a step of the correction at the lowest number of the binade (where a half unit is
      // 2^-8 of it), and the rounding to fp32: 1.544e-5 and 1.192e-7.
      CHECK(tally.worst8 <= 0x1p-9 / kN8 + 0x1p-24);
      CHECK(tally.worst16 <= 0x1p-9 / kN16 + 0x1p-24);
    }
    // From one bf16 number to the next, split24 has 254 numbers of its own. In the highest binade,
    // the last such interval ends before the middle.
    const bool is_highest = exponent == 254;
    CHECK(tally.exact8 == 128 * 254 - (is_highest ? 127 : 0));
    // split32 is exact but for distances of 16384 from a value (N is one short of 32768), two in
    // each interval; half of the highest one is not looked at.
    const std::int64_t lost = is_highest ? 2 * 127 + 1 + 32768 : 2 * 128;
    CHECK(tally.exact16 == kMantissas - lost);
  }
}

TEST_CASE("split: decode is value + correction / N of half the way, rounded once, for every pair") {
  std::int64_t wrong = 0;
  std::vector<std::uint16_t> value(256);
  std::vector<std::int8_t> code(256);
  std::vector<float> out(256);
  for (std::size_t i = 0; i < 256; ++i) code[i] = static_cast<std::int8_t>(i);
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    std::fill(value.begin(), value.end(), static_cast<std::uint16_t>(bits));
    kernels().codecs.decode_split8(out.data(), value.data(), code.data(), 256);
    const bool is_finite = std::isfinite(bf16_number(bits));
    for (std::size_t i = 0; i < 256; ++i) {
      wrong += is_finite ? out[i] != definition(bits, code[i], kN8) : bits_of(out[i]) != bits << 16;
    }
  }
  CHECK(wrong == 0);

  std::vector<std::int16_t> wide(kChunk);
  value.resize(kChunk);
  out.resize(kChunk);
  for (std::size_t i = 0; i < kChunk; ++i) wide[i] = static_cast<std::int16_t>(i);
  for (std::uint32_t bits : {0x0000u, 0x0001u, 0x007Fu, 0x0080u, 0x0100u, 0x3F7Fu, 0x3F80u, 0x3F81u,
                             0x7F00u, 0x7F7Fu, 0x8000u, 0xBF80u, 0xFF7Fu}) {
    std::fill(value.begin(), value.end(), static_cast<std::uint16_t>(bits));
    kernels().codecs.decode_split16(out.data(), value.data(), wide.data(),
                                    static_cast<std::int64_t>(kChunk));
    for (std::size_t i = 0; i < kChunk; ++i) wrong += out[i] != definition(bits, wide[i], kN16);
  }
  CHECK(wrong == 0);
}

struct Pair {
  std::uint32_t value;
  int code8, code16;
};

Pair encoded(float x) {
  Encoded one;
  one.encode({x});
  return {one.value8[0], one.code8[0], one.code16[0]};
}

void check_pair(float x, const Pair& expected) {
  CAPTURE(bits_of(x));
  const Pair actual = encoded(x);
  CHECK(actual.value == expected.value);
  CHECK(actual.code8 == expected.code8);
  CHECK(actual.code16 == expected.code16);
}

TEST_CASE("split: edges") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  check_pair(0.0f, {0x0000, 0, 0});
  check_pair(-0.0f, {0x8000, 0, 0});
  // The smallest number is 2^-15 of a half unit of zero: lost by 8 bits, one step of 16.
  check_pair(0x1p-149f, {0x0000, 0, 1});
  check_pair(-0x1p-149f, {0x8000, 0, -1});
  check_pair(0x1p-134f, {0x0000, 127, 32767});  // half-way to the smallest bf16 number; 0 is even
  check_pair(0x1p-126f, {0x0080, 0, 0});
  // A quarter of the way to the neighbours of 1 (63.5 and 16383.5 codes: away from zero).
  check_pair(1.0f + 0x1p-9f, {0x3F80, 64, 16384});
  check_pair(1.0f - 0x1p-10f, {0x3F80, -64, -16384});
  check_pair(-1.0f + 0x1p-10f, {0xBF80, 64, 16384});
  check_pair(1.0f + 0x1p-8f, {0x3F80, 127, 32767});        // a tie, 1 is even
  check_pair(1.0f + 3 * 0x1p-8f, {0x3F82, -127, -32767});  // a tie, the even one is above
  check_pair(std::numeric_limits<float>::max(), {0x7F7F, 126, 32766});
  check_pair(-3.4e38f, {0xFF7F, -126, -32766});
  check_pair(inf, {0x7F80, 0, 0});
  check_pair(-inf, {0xFF80, 0, 0});
  const Pair nan = encoded(std::bit_cast<float>(0xFF800001u));
  CHECK((nan.value == 0xFFC0 && nan.code8 == 0 && nan.code16 == 0));
}

TEST_CASE("split: the value is the nearest bf16 number of the master as stored") {
  // One fp32 unit below the tie of 0x3F81 and 0x3F82, split32 keeps the nearest bf16 number below;
  // split24 cannot tell it from the tie, whose nearest bf16 number is the even one.
  Encoded one;
  one.encode({std::nextafter(1.0f + 3 * 0x1p-8f, 1.0f)});
  CHECK((one.value8[0] == 0x3F82 && one.code8[0] == -127));
  CHECK((one.value16[0] == 0x3F81 && one.code16[0] == 32766));
}

TEST_CASE("split: of 65536 noise values, as many round up as the position says") {
  std::vector<std::uint16_t> noise(kChunk);
  for (std::size_t i = 0; i < kChunk; ++i) noise[i] = static_cast<std::uint16_t>(i);
  // Inside a binade, below a power of two, across its top, around a tie, subnormal, both signs.
  for (std::uint32_t bits :
       {0x3FA01234u, 0x3F7FD234u, 0x3F7F7EFFu, 0x3F7F7F40u, 0x3F7F7FFFu, 0x3F7F8001u, 0x3F7F80C1u,
        0x3F817FC3u, 0x3F818033u, 0x00001234u, 0x00800321u, 0xC2345678u, 0xBF7F7FA0u}) {
    CAPTURE(bits);
    const float x = std::bit_cast<float>(bits);
    Encoded all(kChunk);
    std::vector<float> in(kChunk, x), master(kChunk), unused(kChunk);
    all.encode(in, noise.data());
    all.decode(master, unused);
    double sum = 0.0;
    for (float m : master) sum += double{m} - double{x};
    // The choice itself is exact; decoded neighbours are rounded to fp32, each by half a unit at
    // most (at the top of a binade, by half a unit of the binade above).
    const double unit = std::ldexp(1.0, std::max(std::ilogb(x), -126) - 23);
    CHECK(std::fabs(sum / kChunk) <= unit);
  }
}

TEST_CASE("split24: updates far below a step of the correction move the master by their sum") {
  FormatSpec spec;
  spec.kind = FormatKind::kSplit24;
  spec.rounding = Rounding::kStochastic;
  const Shape shape{25, 640};
  Storage storage(spec, shape, Category::kWeights);
  encode_all(storage, std::vector<float>(static_cast<std::size_t>(shape.size()), 1.25f));
  // A step is 2^-8 / 127 = 3.08e-5; 200 updates of a hundredth of one come to two steps.
  const double step = 0x1p-8 / kN8;
  const float lr = static_cast<float>(step / 100.0);
  const std::vector<float> direction(kBlock, 1.0f);
  for (std::uint32_t t = 1; t <= 200; ++t) {
    for_each_block(shape, [&](const Block& block) {
      descend_block(storage, block, direction.data(), {lr, {5, 6, t}});
    });
  }
  double mean = 0.0;
  for (double m : decoded(storage, true)) mean += m / static_cast<double>(shape.size());
  // fp32 masters: each update is rounded to multiples of 2^-23, so it may be off by 2^-24, and the
  // decoded master by as much. Each of 200 roundings by chance has variance p (1 - p) < 0.01
  // steps^2: the mean over 16000 elements has deviation sqrt(2 / 16000) steps; five of them.
  const double tolerance = 200 * 2 * 0x1p-24 + 5.0 * std::sqrt(2.0 / 16000.0) * step;
  CHECK(std::fabs(1.25 - mean - 200.0 * double{lr}) <= tolerance);

  spec.rounding = Rounding::kNearest;
  Storage nearest(spec, {1, kBlock}, Category::kWeights);
  encode_all(nearest, std::vector<float>(kBlock, 1.25f));
  for (std::uint32_t t = 1; t <= 200; ++t) {
    descend_block(nearest, {0, 0, kBlock}, direction.data(), {lr, {5, 6, t}});
  }
  CHECK(decoded(nearest, true)[0] == 1.25);
}

TEST_CASE("split: golden bytes; inference needs the value alone") {
  for (FormatKind kind : {FormatKind::kSplit24, FormatKind::kSplit32}) {
    Storage storage(spec_of(kind), {1, 2}, Category::kWeights);
    encode_all(storage, {1.0f + 0x1p-9f, -1.0f + 0x1p-11f});
    const bool is_wide = kind == FormatKind::kSplit32;
    const std::vector<int> expected =
        is_wide ? std::vector<int>{0x80, 0x3F, 0x80, 0xBF, 0x00, 0x40, 0x00, 0x20}
                : std::vector<int>{0x80, 0x3F, 0x80, 0xBF, 64, 32};
    std::vector<int> actual;
    for (std::byte b : all_bytes(storage)) actual.push_back(static_cast<int>(b));
    CHECK(actual == expected);
    CHECK(decoded(storage) == std::vector<double>{1.0, -1.0});
    const std::vector<Plane> planes = storage.planes();
    CHECK(planes[0].spec.inference);
    CHECK_FALSE(planes[1].spec.inference);
    CHECK(planes[1].spec.category == Category::kResiduals);
  }
}

}  // namespace
}  // namespace tritgrad::test::test_format_split
