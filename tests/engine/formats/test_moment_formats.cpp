// The two formats that keep sums instead of elements: scalar and factored.
#include "engine/memory/parallel.h"
#include "tests/support/single.h"

namespace tritgrad::test::test_moment_formats {

TEST_CASE("moments: scalar is the mean of what is written") {
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{5, 321}}) {
    Storage storage(format(FormatKind::kScalar), shape, Category::kMoments);
    CHECK(bytes_of(storage) == 4);
    std::vector<float> values = numbers(shape.size(), 3);
    double mean = 0.0;
    for (float& v : values) {
      v = v * v;
      mean += static_cast<double>(v) / static_cast<double>(values.size());
    }
    for (double v : decoded(storage)) CHECK(v == 0.0);
    encode_all(storage, values);
    storage.refresh();  // nothing was written: the mean stays
    // The sum is a double; the mean is rounded to fp32 once.
    for (double v : decoded(storage)) CHECK(std::abs(v - mean) <= mean * 0x1p-24 * 1.01);
    encode_all(storage, values);  // a pass begins from nothing
    for (double v : decoded(storage)) CHECK(std::abs(v - mean) <= mean * 0x1p-24 * 1.01);
  }
}

TEST_CASE("moments: factored keeps row and column means, and a matrix of rank one entirely") {
  const std::int64_t rows = 9, cols = 331;
  Storage storage(format(FormatKind::kFactored), {rows, cols}, Category::kMoments);
  CHECK(bytes_of(storage) == 4 * (rows + cols + 1));
  std::vector<float> values, product;
  const std::vector<float> a = numbers(rows, 1), b = numbers(cols, 2), c = numbers(rows * cols, 3);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) {
      const auto at = static_cast<std::size_t>(i * cols + j);
      const float r = 1.5f + a[static_cast<std::size_t>(i)];
      product.push_back(r * (1.5f + b[static_cast<std::size_t>(j)]));
      values.push_back(c[at] * c[at]);
    }
  }
  encode_all(storage, product);
  const std::vector<double> again = decoded(storage);
  for (std::size_t i = 0; i < again.size(); ++i) {
    // Means of at most 331 products: sums in float err by 9 roundings, the three factors by 2 each.
    CHECK(std::abs(again[i] - static_cast<double>(product[i])) <= 20.0 * 0x1p-24 * again[i]);
  }

  encode_all(storage, values);
  const std::vector<double> rank_one = decoded(storage);
  const auto row_mean = [&](const auto& matrix, std::int64_t i) {
    double sum = 0.0;
    for (std::int64_t j = 0; j < cols; ++j) {
      sum += static_cast<double>(matrix[static_cast<std::size_t>(i * cols + j)]);
    }
    return sum / static_cast<double>(cols);
  };
  for (std::int64_t i = 0; i < rows; ++i) {
    // As above: elements above zero, each of which has erred by 20 roundings at most.
    const double expected = row_mean(values, i);
    CHECK(std::abs(row_mean(rank_one, i) - expected) <= 20.0 * 0x1p-24 * expected);
  }
}

TEST_CASE("moments: a decoded and updated factored average averages the means themselves") {
  GroupSpec group;
  group.rule.kind = RuleKind::kNormalized;
  group.rule.beta2 = 0.9;
  group.v = format(FormatKind::kFactored);
  const std::int64_t rows = 6, cols = 40;
  Single single({rows, cols}, {}, group);
  std::vector<double> row(static_cast<std::size_t>(rows), 0.0);
  for (std::uint32_t t = 1; t <= 20; ++t) {
    const std::vector<float> grad = numbers(rows * cols, t);
    for (std::int64_t i = 0; i < rows; ++i) {
      double mean = 0.0;
      for (std::int64_t j = 0; j < cols; ++j) {
        const auto g = static_cast<double>(grad[static_cast<std::size_t>(i * cols + j)]);
        mean += g * g / static_cast<double>(cols);
      }
      double& average = row[static_cast<std::size_t>(i)];
      average = 0.9 * average + 0.1 * mean;
    }
    single.step(grad);
  }
  const std::span<float> stored = single.plane<float>("w/v/row_mean");
  // Each of 20 steps rounds a handful of times.
  for (std::size_t i = 0; i < row.size(); ++i) {
    CHECK(static_cast<double>(stored[i]) == doctest::Approx(row[i]).epsilon(20 * 8 * 0x1p-24));
  }
}

TEST_CASE("moments: sums do not depend on the number of threads") {
  for (FormatKind kind : {FormatKind::kScalar, FormatKind::kFactored}) {
    std::vector<std::vector<std::byte>> states;
    for (int threads : {1, 2, 3, 7}) {
      set_thread_count(threads);
      GroupSpec group;
      group.v = format(kind);
      Single single({700, 333}, {}, group);
      for (std::uint32_t t = 0; t < 3; ++t) single.step(numbers(700 * 333, 50 + t));
      states.push_back(single.state());
    }
    set_thread_count(0);
    for (const auto& state : states) CHECK(state == states[0]);
  }
}

// In double, the small squares of the tile to the right only count if they come before the large
// ones of the tile below, which are half-way between two floats: 2^24 + 1.
TEST_CASE("moments: what comes in tiles is added up along their rows, whatever is read first") {
  const Shape shape{32, 512};
  Copied copied{std::vector<float>(static_cast<std::size_t>(shape.size()), 0.0f), shape.cols()};
  for (std::size_t row = 0; row < 16; ++row) copied.grad[row * 512 + 320] = 0x1p-15f;
  copied.grad[16 * 512] = 0x1p12f;
  copied.grad[16 * 512 + 1] = 1.0f;
  const LazyGradient source = copied.source();
  for (const double momentum : {0.0, 0.1}) {
    GroupSpec group;
    group.rule.kind = RuleKind::kNormalized;
    group.rule.beta2 = 0.5;
    group.rule.momentum = momentum;
    group.v = format(FormatKind::kScalar);
    Single single(shape, format(FormatKind::kLatent8), group);
    single.w().lazy_gradient = &source;
    single.step(copied.grad);
    const Storage& v = single.optimizer->moment(single.w(), momentum > 0.0 ? 1 : 0);
    CHECK(decoded(v) == std::vector<double>(decoded(v).size(), (0x1p24 + 2.0) / 2.0 / 16384.0));
  }
}

TEST_CASE("moments: they are no formats of weights") {
  GroupSpec group;
  group.rule.kind = RuleKind::kSgd;
  for (FormatKind kind : {FormatKind::kScalar, FormatKind::kFactored}) {
    Single single({2, 2}, format(kind), group);
    CHECK_THROWS_AS(single.step({1, 2, 3, 4}), Error);
  }
}

}  // namespace tritgrad::test::test_moment_formats
