// Formats of few bits: what they store, what rounding does to them, and what gets lost.
#include <array>

#include "engine/kernel_table.h"
#include "tests/support.h"

namespace tritgrad::test {
namespace {

FormatSpec spec_of(FormatKind kind, Rounding rounding = Rounding::kNearest) {
  FormatSpec spec;
  spec.kind = kind;
  spec.rounding = rounding;
  return spec;
}

}  // namespace

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
      counts += storage.descend(block, direction.data(), {-x, {1, 2, 3}});
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
      counts += storage.descend({0, 0, 3}, down.data(), {step.lr, {}});
    }
    CHECK(decoded(storage) == step.after);
    CHECK(counts.flips == step.flips);
    CHECK(counts.rail_flips == step.rail_flips);
  }
}

}  // namespace tritgrad::test
