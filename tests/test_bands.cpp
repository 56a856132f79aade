// ternary with bands: accumulators for one band of rows at a time (engine/formats/ternary.h).
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "engine/checkpoint.h"
#include "models/recipe.h"
#include "tests/single.h"

namespace tritgrad::test {
namespace {

constexpr std::int64_t kCols = 323;
constexpr std::int64_t kSteps = 40;

FormatSpec with_bands(int bands) {
  FormatSpec spec = spec_of(FormatKind::kTernary, Rounding::kStochastic);
  spec.bands = bands;
  return spec;
}

// Update `step` of kSteps, of every row, by the same directions for all storages.
void update(Storage& storage, std::int64_t step) {
  storage.begin_update(step, kSteps);
  const Shape shape = storage.shape();
  const Descent descent{0.3f, {1, 2, static_cast<std::uint32_t>(step + 1)}};
  const std::vector<float> direction = numbers(shape.size(), static_cast<std::uint32_t>(step) + 5);
  for_each_block(shape, [&](const Block& block) {
    storage.descend(block, direction.data() + block.row * shape.cols() + block.col, descent);
  });
}

std::vector<double> row_of(const std::vector<double>& values, std::int64_t row) {
  return {values.begin() + row * kCols, values.begin() + (row + 1) * kCols};
}

// Rows [first, first + rows) of numbers.
std::vector<double> rows_of(const std::vector<float>& numbers, std::int64_t first,
                            std::int64_t rows) {
  return {numbers.begin() + first * kCols, numbers.begin() + (first + rows) * kCols};
}

Storage start(int bands, std::int64_t rows) {
  Storage storage(with_bands(bands), {rows, kCols}, Category::kWeights);
  encode_all(storage, numbers(rows * kCols, 3));
  return storage;
}

}  // namespace

TEST_CASE("bands: accumulators are those of one band") {
  const auto residual = [](int bands, std::int64_t rows) {
    std::int64_t bytes = 0;
    for (const Plane& plane : start(bands, rows).planes()) {
      if (plane.spec.category == Category::kResiduals) bytes += plane.spec.bytes();
    }
    return bytes;
  };
  CHECK(residual(1, 16) == 16 * kCols);
  CHECK(residual(8, 16) == 2 * kCols + 1);
  CHECK(residual(8, 17) == 3 * kCols + 1);
  CHECK(residual(8, 3) == kCols + 1);
}

// Rows that do not divide by the bands, and fewer rows than bands.
TEST_CASE("bands: a row moves while its band is trained, as with accumulators of its own") {
  for (const std::int64_t rows : {16, 11, 3}) {
    constexpr int kBands = 8;
    const std::int64_t band_rows = (rows + kBands - 1) / kBands;
    const std::int64_t used = (rows + band_rows - 1) / band_rows;
    std::int64_t last = -1;
    Storage storage = start(kBands, rows);
    for (std::int64_t step = 0; step < kSteps; ++step) {
      CAPTURE(rows);
      CAPTURE(step);
      const std::int64_t band = step * used / kSteps;
      const std::vector<double> before = decoded(storage);
      // Where a band begins, the others' masters are their trits: those of a matrix that has
      // accumulators for all rows and was written so.
      Storage whole(with_bands(1), {rows, kCols}, Category::kWeights);
      if (std::exchange(last, band) != band) {
        storage.begin_update(step, kSteps);
        CHECK(decoded(storage) == before);
      }
      const std::vector<double> masters = decoded(storage, true);
      encode_all(whole, {masters.begin(), masters.end()});
      update(storage, step);
      update(whole, step);
      const std::vector<double> after = decoded(storage, true), expected = decoded(whole, true);
      for (std::int64_t row = 0; row < rows; ++row) {
        const bool trained = row / band_rows == band;
        CHECK(row_of(after, row) == row_of(trained ? expected : masters, row));
      }
    }
  }
}

TEST_CASE("bands: the optimizer tells the storage which update of how many begins") {
  GroupSpec group;
  group.rule.kind = RuleKind::kSign;
  group.lr = 0.3;
  FormatSpec spec = with_bands(4);
  spec.rounding = Rounding::kNearest;
  constexpr std::int64_t kTotal = 8;
  Single single({16, kCols}, spec, group, kTotal);
  for (std::int64_t step = 0; step < kTotal; ++step) {
    const std::vector<double> before = decoded(single.w().storage(), true);
    const std::vector<double> values = decoded(single.w().storage());
    single.step(numbers(16 * kCols, static_cast<std::uint32_t>(step) + 5));
    const std::vector<double> after = decoded(single.w().storage(), true);
    for (std::int64_t row = 0; row < 16; ++row) {
      CAPTURE(step);
      CAPTURE(row);
      const std::int64_t band = row / 4, now = step / 2;
      if (band == now) CHECK(row_of(after, row) != row_of(before, row));
      if (band > now) CHECK(row_of(after, row) == row_of(before, row));
      // What is over has its trits left, from the first step of the next band on.
      if (band < now) CHECK(row_of(after, row) == row_of(values, row));
    }
  }
}

// Rows at rest would make the band's weights and the mean square NaN if they were read.
TEST_CASE("bands: of rows at rest no gradient is computed") {
  constexpr std::int64_t kRows = 38, kBandRows = 10, kTotal = 8;
  struct Gradient {
    std::vector<float> numbers = test::numbers(kRows * kCols, 4);
    std::int64_t band = 0;
  } gradient;
  const GradientSource source{[](const void* context, std::int64_t row_begin, std::int64_t row_end,
                                 std::int64_t col_begin, std::int64_t col_end, float* out) {
                                const auto& of = *static_cast<const Gradient*>(context);
                                for (std::int64_t row = row_begin; row < row_end; ++row) {
                                  const float* from = of.numbers.data() + row * kCols;
                                  out = row / kBandRows == of.band
                                            ? std::copy(from + col_begin, from + col_end, out)
                                            : std::fill_n(out, col_end - col_begin, std::nanf(""));
                                }
                              },
                              &gradient, true};
  GroupSpec group;
  group.rule.kind = RuleKind::kNormalized;
  group.rule.beta2 = 0.5;
  group.lr = 0.3;
  group.v = spec_of(FormatKind::kScalar);
  Single single({kRows, kCols}, with_bands(4), group, kTotal);
  single.w().gradient_source = &source;
  double v = 0.0;
  for (std::int64_t step = 0; step < kTotal; ++step) {
    CAPTURE(step);
    gradient.band = step / 2;
    const std::int64_t first = gradient.band * kBandRows;
    const std::int64_t rows = std::min(kRows - first, kBandRows);
    double squares = 0.0;
    for (const double g : rows_of(gradient.numbers, first, rows)) squares += g * g;
    v = 0.5 * v + 0.5 * squares / static_cast<double>(rows * kCols);
    const std::vector<double> before = decoded(single.w().storage(), true);
    single.step(std::vector<float>(gradient.numbers.size(), 0.0f));
    // Square, sum and mean are rounded to fp32, 2^-24 each (halves are exact), and half of what v
    // had erred by remains: below 2 x 3 x 2^-24.
    CHECK(std::abs(static_cast<double>(single.plane<float>("w/v/mean")[0]) - v) <= 6 * 0x1p-24 * v);
    // The first step only measures; the others move rows of the band.
    const std::vector<double> after = decoded(single.w().storage(), true);
    CHECK((row_of(after, first) != row_of(before, first)) == (step > 0));
  }
}

// Otherwise what it remembers of them would be of another time when theirs comes.
TEST_CASE("bands: a rule that remembers more than one number sees rows at rest as well") {
  constexpr std::int64_t kRows = 16, kOfMatrix = kRows * kCols;
  const auto one_step = [](RuleKind rule, FormatKind m, FormatKind v, double momentum = 0.0) {
    GroupSpec group;
    group.rule.kind = rule;
    group.rule.momentum = momentum;
    group.m = spec_of(m);
    group.v = spec_of(v);
    auto single = std::make_unique<Single>(Shape{kRows, kCols}, with_bands(4), group, 8);
    single->step(std::vector<float>(kOfMatrix, 1.0f));
    if (momentum > 0.0) single->step(std::vector<float>(kOfMatrix, 1.0f));  // the first measures
    return single;
  };
  const auto adamw = one_step(RuleKind::kAdamw, FormatKind::kFp32, FormatKind::kScalar);
  for (const float m : adamw->plane<float>("w/m/value")) REQUIRE(m != 0.0f);
  const auto averaged =
      one_step(RuleKind::kNormalized, FormatKind::kFp32, FormatKind::kScalar, 0.5);
  for (const float m : averaged->plane<float>("w/m/value")) REQUIRE(m != 0.0f);
  const auto factored = one_step(RuleKind::kNormalized, FormatKind::kFp32, FormatKind::kFactored);
  for (const float mean : factored->plane<float>("w/v/row_mean")) REQUIRE(mean != 0.0f);
  const auto microadam = one_step(RuleKind::kMicroadam, FormatKind::kFp32, FormatKind::kFp32);
  Single whole({kRows, kCols}, with_bands(1), microadam->optimizer->group(microadam->w()), 8);
  whole.step(std::vector<float>(kOfMatrix, 1.0f));
  CHECK(microadam->state() == whole.state());
}

TEST_CASE("bands: a checkpoint holds the accumulators as rows of their own") {
  for (const std::int64_t rows : {64, 10}) {
    ParameterStore store;
    store.add({"w", Role::kWeight, {rows, 64}, with_bands(8), {Initial::Kind::kUniform, 1.0f}}, 1);
    for (const NamedPlane& plane : parameter_planes(store)) {
      if (plane.name == "w/accumulator") CHECK(plane.shape == Shape{(rows + 7) / 8, 64});
      if (plane.name == "w/band") CHECK(plane.shape == Shape{1});
      if (plane.name == "w/trits") CHECK(plane.shape == Shape{rows, 13});
    }
  }
}

TEST_CASE("bands: what a band has accumulated is dropped when its time is over") {
  Storage storage = start(8, 16);
  update(storage, 0);
  const std::vector<double> masters = decoded(storage, true), values = decoded(storage);
  CHECK(row_of(masters, 0) != row_of(values, 0));
  storage.begin_update(kSteps / 8, kSteps);
  CHECK(decoded(storage, true) == values);
  // Beyond the run's end the last band stays.
  storage.begin_update(2 * kSteps, kSteps);
  update(storage, kSteps - 1);
  CHECK(row_of(decoded(storage, true), 15) != row_of(values, 15));
}

TEST_CASE("bands: masters within half a level in the band, half a trit elsewhere; written twice") {
  for (const int bands : {2, 5, 64}) {
    Storage storage(with_bands(bands), {7, kCols}, Category::kWeights);
    const std::vector<float> input = numbers(7 * kCols, 9);
    encode_all(storage, input);
    const std::vector<double> masters = decoded(storage, true);
    const std::int64_t trained = (7 + bands - 1) / bands * kCols;
    for (std::int64_t i = 0; i < std::ssize(input); ++i) {
      const auto at = static_cast<std::size_t>(i);
      // 85 levels a trit; the product with them may err by 2^-24 of itself at a tie.
      const double bound = (i < trained ? 0.5 / 85.0 : 0.5) * (1.0 + 1e-4);
      REQUIRE(std::abs(masters[at] - static_cast<double>(input[at])) <= bound);
    }
    const std::vector<std::byte> bytes = all_bytes(storage);
    encode_all(storage, {masters.begin(), masters.end()});
    CHECK(all_bytes(storage) == bytes);
  }
}

TEST_CASE("bands: recipes") {
  CHECK(load_recipe("bands4").group(Role::kWeight).format.bands == 4);
  CHECK(load_recipe("bands8").group(Role::kWeight).format.bands == 8);
  CHECK(load_recipe("votes", {"weight.bands=64"}).group(Role::kWeight).format.bands == 64);
  const auto refusal = [](const char* recipe, const char* override_text) -> std::string {
    try {
      load_recipe(recipe, {override_text});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal("votes", "weight.bands=0").find("bands = 0 is outside 1..64") != std::string::npos);
  CHECK(refusal("votes", "weight.bands=65").find("outside 1..64") != std::string::npos);
  for (const int bands : {0, 65, -1}) {
    CHECK_THROWS_AS(Storage::plane_specs(with_bands(bands), {4, 4}, Category::kWeights), Error);
  }
  CHECK(refusal("latent8", "weight.bands=2").find("has no effect") != std::string::npos);
}

}  // namespace tritgrad::test
