// companded8 and root8 against their definition: every code, bounds derived from the distances of
// decoded neighbours, and means over all noise.
#include <bit>
#include <cmath>
#include <limits>

#include "engine/kernels/codecs.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_format_companded {
namespace {

constexpr FormatKind kBoth[] = {FormatKind::kCompanded8, FormatKind::kRoot8};

int top_code(FormatKind kind) { return kind == FormatKind::kCompanded8 ? 127 : 255; }

// Returns the number that a code means at scale 1.
double share(FormatKind kind, double code) {
  const double z = code / top_code(kind);
  return kind == FormatKind::kCompanded8 ? z / (2.0 - std::fabs(z)) : z * z;
}

// The distance of the decoded neighbours around a magnitude, at scale 1.
double gap_around(FormatKind kind, double magnitude) {
  int code = 0;
  while (code + 2 <= top_code(kind) && share(kind, code + 1) <= magnitude) ++code;
  return share(kind, code + 1) - share(kind, code);
}

// Returns the scale that its bits mean.
float scale_number(std::uint32_t bits) { return std::bit_cast<float>(bits << 15); }

// One row through a storage: the numbers that come back.
std::vector<double> through(FormatKind kind, const std::vector<float>& row,
                            Rounding rounding = Rounding::kNearest) {
  Storage storage(spec_of(kind, rounding), {1, static_cast<std::int64_t>(row.size())},
                  Category::kMoments);
  encode_all(storage, row);
  return decoded(storage);
}

// Positive numbers for root8.
std::vector<float> states(FormatKind kind, std::int64_t n, std::uint32_t salt) {
  std::vector<float> row = numbers(n, salt);
  if (kind == FormatKind::kRoot8) {
    for (float& x : row) x *= x;
  }
  return row;
}

double largest(const std::vector<float>& row) {
  double result = 0.0;
  for (float x : row) result = std::max(result, std::fabs(double{x}));
  return result;
}

// One group at kernel level, with the same noise for all elements.
struct Group {
  std::vector<double> operator()(FormatKind kind, const std::vector<float>& in,
                                 const std::uint16_t* noise = nullptr,
                                 const std::uint16_t* scale_noise = nullptr) {
    const auto n = static_cast<std::int64_t>(in.size());
    std::vector<float> out(in.size());
    std::vector<std::uint16_t> same(in.size(), noise == nullptr ? std::uint16_t{0} : *noise);
    const std::uint16_t* noises = noise == nullptr ? nullptr : same.data();
    if (kind == FormatKind::kCompanded8) {
      std::vector<std::int8_t> code(in.size());
      kernels().codecs.encode_companded(code.data(), &scale, in.data(), noises, scale_noise, n);
      kernels().codecs.decode_companded(out.data(), code.data(), &scale, n);
      codes.assign(code.begin(), code.end());
    } else {
      std::vector<std::uint8_t> code(in.size());
      kernels().codecs.encode_root(code.data(), &scale, in.data(), noises, scale_noise, n);
      kernels().codecs.decode_root(out.data(), code.data(), &scale, n);
      codes.assign(code.begin(), code.end());
    }
    return {out.begin(), out.end()};
  }
  std::uint16_t scale = 0;
  std::vector<int> codes;
};

TEST_CASE("companded: every code at every kind of scale means what it should and is found again") {
  // Smallest and largest, around 2^-126 (below, they are subnormal), and ordinary ones.
  for (std::uint32_t scale : {0x0001u, 0x0002u, 0x0003u, 0x00FFu, 0x0100u, 0x1A47u, 0x7F00u,
                              0x7F01u, 0x7FFFu, 0xFC25u, 0xFEFFu}) {
    for (FormatKind kind : kBoth) {
      CAPTURE(scale);
      CAPTURE(std::string(format_name(kind)));
      const double s = double{scale_number(scale)};
      // fp32 rounds the quotient (or the square, then the quotient) and the product, and among
      // subnormals to multiples of 2^-149.
      const double tolerance = 3 * 0x1p-24;
      const int lowest = kind == FormatKind::kCompanded8 ? -top_code(kind) : 0;
      for (int code = lowest; code <= top_code(kind); ++code) {
        std::vector<float> in(2, scale_number(scale));
        in[1] = static_cast<float>(s * share(kind, code));
        Group group;
        const std::vector<double> out = group(kind, in);
        REQUIRE(group.codes == std::vector<int>{top_code(kind), code});
        REQUIRE(group.scale == scale);
        REQUIRE(out[0] == s);
        const double expected = s * share(kind, code);
        REQUIRE(std::fabs(out[1] - expected) <= tolerance * std::fabs(expected) + 0x1p-149);
        // Stochastic rounding must find the code of what was decoded, whatever the noise.
        for (std::uint16_t noise : {std::uint16_t{0}, std::uint16_t{65535}}) {
          const std::vector<float> again(out.begin(), out.end());
          REQUIRE(group(kind, again, &noise, &noise) == out);
          REQUIRE(group.scale == scale);
          REQUIRE(group.codes == std::vector<int>{top_code(kind), code});
        }
      }
    }
  }
}

TEST_CASE("companded: between all neighbours, nearest errs by at most half a code") {
  for (FormatKind kind : kBoth) {
    for (int code = 0; code < top_code(kind); ++code) {
      const double low = share(kind, code);
      const double high = share(kind, code + 1);
      for (int part = 0; part <= 16; ++part) {
        const double x = low + (high - low) * part / 16.0;
        Group group;
        const std::vector<double> out = group(kind, {1.0f, static_cast<float>(x)});
        CAPTURE(std::string(format_name(kind)));
        CAPTURE(code);
        // Shares grow faster and faster, so the upper half of a code is the larger one. The input
        // is rounded to fp32, and so are the decoded neighbours (3 operations) and the code (6).
        double bound = high - share(kind, code + 0.5) + 10 * 0x1p-24 * high;
        // A positive number is never rounded to zero by root8.
        if (kind == FormatKind::kRoot8 && code == 0) bound = high - low;
        REQUIRE(std::fabs(out[1] - x) <= bound);
        if (kind == FormatKind::kCompanded8) {
          const std::vector<double> mirrored = group(kind, {1.0f, static_cast<float>(-x)});
          REQUIRE(mirrored[1] == -out[1]);
        }
      }
    }
  }
}

TEST_CASE("companded: the scale is the largest magnitude, rounded to nine significant bits") {
  for (std::uint32_t i = 0; i < 65536; i += 7) {
    const float x = std::bit_cast<float>(0x3F800000u + (i << 7) % 0x800000u + i % 128);
    for (FormatKind kind : kBoth) {
      Group group;
      const std::vector<double> out = group(kind, {x * 0.1f, x});
      // Half a unit in the last of nine significant bits is at most 2^-9 of the number.
      REQUIRE(std::fabs(out[1] - double{x}) <= 0x1p-9 * double{x});
      REQUIRE(group.codes[1] == top_code(kind));
    }
  }
  Group group;
  for (FormatKind kind : kBoth) {
    const std::vector<double> out = group(kind, {std::numeric_limits<float>::max(), 1e38f});
    CHECK(out[0] == double{scale_number(0xFEFF)});
  }
}

TEST_CASE("companded: over evenly spread noise, the mean of what is decoded is what was encoded") {
  // The last is a scale, the others lie between two; neighbours of the largest too.
  for (float top : {1.0047f, 1.9999f, 1e-30f, 3.1e29f, 1e-39f, 1.5f}) {
    const double s = double{top};
    for (FormatKind kind : kBoth) {
      CAPTURE(top);
      CAPTURE(std::string(format_name(kind)));
      std::vector<float> in = {top,        0.9999f * top, 0.9985f * top, 0.993f * top, 0.98f * top,
                               0.7f * top, 0.31f * top,   0.0612f * top, 0.003f * top, 0.0f};
      if (kind == FormatKind::kCompanded8) in[5] = -in[5];
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(top);
      const double chance_up = (bits & 0x7FFFu) / 32768.0;
      std::vector<double> mean(in.size(), 0.0);
      for (std::uint16_t scale_noise : {std::uint16_t{0}, std::uint16_t{65535}}) {
        // Noise 65535 rounds every number up that is no scale, noise 0 none.
        const double weight = scale_noise == 0 ? 1.0 - chance_up : chance_up;
        for (std::uint32_t noise = 8; noise < 65536; noise += 16) {
          Group group;
          const auto element_noise = static_cast<std::uint16_t>(noise);
          const std::vector<double> out = group(kind, in, &element_noise, &scale_noise);
          for (std::size_t i = 0; i < in.size(); ++i) mean[i] += weight * out[i] / 4096.0;
        }
      }
      for (std::size_t i = 0; i < in.size(); ++i) {
        CAPTURE(i);
        const double x = double{in[i]};
        // The position between two neighbours is met by multiples of 2^-12, so to 2^-13 of their
        // gap, and errs by that of the target, a few 2^-24 of the scale (the top of the stretched
        // part). The guess may err by 5 * 2^-24 * top code, less than 2^-13 codes, beyond which no
        // noise goes. fp32 subnormals are 2^-149 apart. Under the scale above the largest, shares
        // are not larger than under the largest itself; under the one below they are.
        const double lower = double{scale_number(bits >> 15)};
        const double upper = double{scale_number((bits >> 15) + 1)};
        const double gap = std::max(upper * gap_around(kind, std::fabs(x) / s),
                                    lower * gap_around(kind, std::min(1.0, std::fabs(x) / lower)));
        const double tolerance = gap * (0x1p-13 + 0x1p-13) + 8 * 0x1p-24 * s + 0x1p-148;
        REQUIRE(std::fabs(mean[i] - x) <= tolerance);
      }
    }
  }
}

// A number that scale 1 + 2^-8 decodes from a code and that lies a quarter of the way between codes
// at scale 1.
double quarter_way_at_one(FormatKind kind) {
  for (int code = top_code(kind) / 3; code < top_code(kind); ++code) {
    const double x = share(kind, code) * (1.0 + 0x1p-8);
    const double gap = share(kind, code + 1) - share(kind, code);
    if (std::fabs((x - share(kind, code)) / gap - 0.25) < 0.05) return x;
  }
  FAIL("no such number");
  return 0.0;
}

TEST_CASE("companded: the noise of scales is independent of that of elements") {
  // The largest, 1 + 2^-9, is half-way between two scales; the others of its group are exact at the
  // upper one and a quarter of the way between codes at the lower one. If an element shared the
  // noise of its scale, it would be rounded up twice as often as it should be whenever the scale is
  // rounded down, and its mean would be an eighth of a gap too large.
  const Shape shape{250, 320};
  for (FormatKind kind : kBoth) {
    CAPTURE(std::string(format_name(kind)));
    const double x = quarter_way_at_one(kind);
    std::vector<float> row(static_cast<std::size_t>(shape.size()), static_cast<float>(x));
    for (std::size_t i = 31; i < row.size(); i += 32) row[i] = 1.0f + 0x1p-9f;
    Storage storage(spec_of(kind, Rounding::kStochastic), shape, Category::kMoments);
    encode_all(storage, row);
    const double groups = static_cast<double>(row.size()) / 32.0;
    std::vector<double> mean(32, 0.0);
    const std::vector<double> out = decoded(storage);
    for (std::size_t i = 0; i < out.size(); ++i) mean[i % 32] += out[i] / groups;
    // Neighbours g apart have variance g^2 / 4 at most; the mean of 2500 groups, five deviations:
    // a twentieth of a gap.
    const double gap = gap_around(kind, x);
    for (std::size_t i = 0; i < 31; ++i) REQUIRE(std::fabs(mean[i] - x) <= 0.05 * gap);
    CHECK(std::fabs(mean[31] - (1.0 + 0x1p-9)) <= 0.05 * 0x1p-8);
  }
}

TEST_CASE("companded: a moving average decays on the whole, where rounding to nearest stalls") {
  const Shape shape{40, 320};
  // Just above a power of two scales are farthest apart, relatively: 2^-8.
  constexpr double kStart = 1.25;
  std::vector<float> start(static_cast<std::size_t>(shape.size()), static_cast<float>(kStart));
  for (Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {
    Storage storage(spec_of(FormatKind::kRoot8, rounding), shape, Category::kMoments);
    encode_all(storage, start);
    for (std::uint32_t step = 1; step <= 500; ++step) {
      for_each_block(shape, [&](const Block& block) {
        std::vector<float> v(static_cast<std::size_t>(block.n));
        storage.decode_master(block, v.data());
        for (float& x : v) x *= 0.999f;
        storage.encode(block, v.data(), {1, 2, step});
      });
    }
    const std::vector<double> out = decoded(storage);
    double mean = 0.0;
    for (double v : out) mean += v / static_cast<double>(shape.size());
    // All elements of a group are its largest and share the noise of its scale. One rounding
    // chooses between neighbours at most 2^-8 v apart, so its variance is at most 2^-18 v^2, and v
    // <= kStart. 500 steps, 400 groups, five deviations.
    const double deviation = kStart * std::sqrt(500.0 * 0x1p-18 / 400.0);
    if (rounding == Rounding::kStochastic) {
      CHECK(std::fabs(mean - kStart * std::pow(0.999, 500)) <= 5.0 * deviation);
    } else {
      CHECK(std::count(out.begin(), out.end(), kStart) == shape.size());
    }
  }
}

TEST_CASE("companded: root8 has code 0 for zero alone") {
  for (Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {
    for (float top : {3e38f, 1.0f, 1e-20f, 1e-38f, 1e-42f}) {
      std::vector<float> row(4096, 0.0f);
      for (std::size_t i = 0; i < row.size(); ++i) {
        const int exponent = -static_cast<int>(i / 16);
        row[i] = i % 32 == 0 ? top : i % 3 == 0 ? 0.0f : std::ldexp(top, exponent);
        if (i % 32 == 7) row[i] = std::numeric_limits<float>::denorm_min();
      }
      const std::vector<double> out = through(FormatKind::kRoot8, row, rounding);
      for (std::size_t i = 0; i < row.size(); ++i) {
        CAPTURE(i);
        REQUIRE((out[i] > 0.0) == (row[i] > 0.0f));
      }
    }
  }
}

TEST_CASE("companded: groups of any magnitude keep their accuracy") {
  for (FormatKind kind : kBoth) {
    // Down to fp32's subnormals, where fp16 scales would have been zero since 1e-8.
    for (int exponent = -125; exponent <= 125; exponent += 5) {
      std::vector<float> row = states(kind, 320, 42);
      for (float& x : row) x = std::ldexp(x, exponent);
      const std::vector<double> out = through(kind, row);
      double error = 0.0, power = 0.0, product = 0.0, power_out = 0.0;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const double x = std::ldexp(double{row[i]}, -exponent);
        const double y = std::ldexp(out[i], -exponent);
        error += std::fabs(x - y) / static_cast<double>(row.size());
        power += x * x;
        power_out += y * y;
        product += x * y;
      }
      CAPTURE(exponent);
      CHECK(product / std::sqrt(power * power_out) > 0.9999);
      CHECK(error <= 1.6 / 255.0);
    }
  }
}

TEST_CASE("companded: rows of any length, their last group included") {
  for (FormatKind kind : kBoth) {
    for (std::int64_t n : {1, 5, 31, 32, 33, 65, 100, 320, 321, 999, 1000, 1025, 2000, 4097}) {
      CAPTURE(n);
      CAPTURE(std::string(format_name(kind)));
      const std::vector<float> row = states(kind, n, 43);
      const std::vector<double> out = through(kind, row);
      for (std::int64_t begin = 0; begin < n; begin += kCompandedGroup) {
        const auto first = row.begin() + begin;
        const std::vector<float> group(first, row.begin() + std::min(begin + kCompandedGroup, n));
        const double s = largest(group);
        double error = 0.0;
        for (std::size_t i = 0; i < group.size(); ++i) {
          const double x = double{group[i]};
          const double y = out[static_cast<std::size_t>(begin) + i];
          error += std::fabs(x - y) / static_cast<double>(group.size());
          // Half the gap (a whole one at code 0 of root8), and the scale's rounding where it bends
          // the top.
          const double gap = s * gap_around(kind, std::fabs(x) / s);
          const double first_gap = kind == FormatKind::kRoot8 ? s / 65025.0 : 0.0;
          REQUIRE(std::fabs(x - y) <= 0.51 * gap + first_gap + s * 0x1p-9);
        }
        CHECK(error <= 1.6 * s / 255.0);
      }
    }
  }
}

TEST_CASE("companded: zeros stay, and what is not finite spoils its own group alone") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (FormatKind kind : kBoth) {
    for (Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {
      for (double x : through(kind, std::vector<float>(100, -0.0f), rounding)) CHECK(x == 0.0);
      std::vector<float> row = states(kind, 320, 44);
      for (std::size_t i = 0; i < row.size(); i += 3) row[i] = 0.0f;
      std::vector<double> out = through(kind, row, rounding);
      for (std::size_t i = 0; i < row.size(); i += 3) REQUIRE(out[i] == 0.0);
      for (float bad : {inf, -inf, nan, -nan, -1e-45f}) {
        if (kind == FormatKind::kCompanded8 && std::isfinite(bad)) continue;
        row[40] = bad;
        out = through(kind, row, rounding);
        for (std::size_t i = 0; i < row.size(); ++i) {
          REQUIRE(std::isnan(out[i]) == (i / 32 == 1));
        }
      }
    }
  }
}

TEST_CASE("companded: golden bytes") {
  for (FormatKind kind : kBoth) {
    Storage storage(spec_of(kind), {2, 33}, Category::kMoments);
    std::vector<float> in(66, 0.0f);
    in[0] = 2.0f;
    in[1] = kind == FormatKind::kCompanded8 ? -2.0f / 3.0f : 0.5f;  // z = 1/2, root 1/2
    in[65] = 1.0f;                                                  // second row, second group
    encode_all(storage, in);
    const std::vector<Plane> planes = storage.planes();
    REQUIRE(planes[0].bytes.size() == 66);
    REQUIRE(planes[1].bytes.size() == 8);  // two groups in each row
    const bool is_signed = kind == FormatKind::kCompanded8;
    CHECK(static_cast<int>(planes[0].bytes[0]) == top_code(kind));
    // -63.5 and 127.5: ties to even.
    CHECK(static_cast<int>(planes[0].bytes[1]) == (is_signed ? 256 - 64 : 128));
    CHECK(static_cast<int>(planes[0].bytes[65]) == top_code(kind));
    std::vector<int> scales;
    for (std::byte b : planes[1].bytes) scales.push_back(static_cast<int>(b));
    CHECK(scales == std::vector<int>{0x00, 0x80, 0, 0, 0, 0, 0x00, 0x7F});
  }
}

}  // namespace
}  // namespace tritgrad::test::test_format_companded
