#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "engine/data/open_dataset.h"
#include "engine/data/standardizer.h"
#include "engine/memory/parallel.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_standardizer {
namespace {

using Rows = std::vector<std::int32_t>;

Dataset table(std::int64_t rows, std::vector<float> values) {
  Dataset data;
  data.name = "table";
  data.allocate(rows, static_cast<std::int64_t>(values.size()) / rows, Element::kFloat32);
  std::copy(values.begin(), values.end(), data.values.as<float>());
  return data;
}

std::vector<float> applied(const Standardizer& standardizer, std::vector<float> row) {
  standardizer.apply(row);
  return row;
}

TEST_CASE("standardizer: training columns get mean 0 and variance 1") {
  const Dataset data = open_dataset("wdbc");
  Rows rows(400);
  std::iota(rows.begin(), rows.end(), 100);
  const Standardizer standardizer = Standardizer::fit(data, rows);
  std::vector<double> sum(30), squares(30);
  std::vector<float> row(30);
  for (std::int32_t r : rows) {
    data.gather(r, row.data());
    standardizer.apply(row);
    for (std::size_t j = 0; j < 30; ++j) {
      sum[j] += static_cast<double>(row[j]);
      squares[j] += static_cast<double>(row[j] * row[j]);
    }
  }
  // Mean and inverse deviation are rounded to fp32: relative error 2^-24 each. A mean is at most 9
  // deviations from zero in these columns, so it moves by 9 * 2^-24 < 1e-6; variances move by about
  // 2^-23 for the scale and each square is rounded by 2^-24: below 1e-6 too.
  for (std::size_t j = 0; j < 30; ++j) {
    CHECK(std::abs(sum[j] / 400) < 1e-6);
    CHECK(std::abs(squares[j] / 400 - 1.0) < 1e-6);
  }
}

TEST_CASE("standardizer: only training rows count") {
  const Standardizer standardizer = Standardizer::fit(table(3, {1, 3, 1000}), Rows{0, 1});
  CHECK(standardizer.means() == std::vector<float>{2});
  CHECK(standardizer.inverse_stds() == std::vector<float>{1});
}

TEST_CASE("standardizer: every column is measured, however many there are and on all threads") {
  constexpr std::int64_t kColumns = 600;
  constexpr float kRows[] = {-1, 0, 1};  // column j holds j + 3 times these
  std::vector<float> values;
  for (float row : kRows) {
    for (std::int64_t j = 0; j < kColumns; ++j) values.push_back(static_cast<float>(j) + 3 * row);
  }
  const Dataset data = table(3, values);
  std::vector<float> part(kColumns);
  data.gather(1, 250, 590, part.data());
  for (std::size_t j = 0; j < 340; ++j) CHECK(part[j] == static_cast<float>(250 + j));
  for (int threads : {1, 4}) {
    set_thread_count(threads);
    const Standardizer standardizer = Standardizer::fit(data, Rows{0, 1, 2});
    set_thread_count(0);
    for (std::size_t j = 0; j < kColumns; ++j) {
      CHECK(standardizer.means()[j] == static_cast<float>(j));
      // Variance (9 + 0 + 9) / 3 = 6, from differences that are exact.
      CHECK(standardizer.inverse_stds()[j] == static_cast<float>(1.0 / std::sqrt(6.0)));
    }
  }
}

TEST_CASE("standardizer: the columns of an image count alike, however many there are") {
  Dataset data;
  data.image = {1, 600, 1};
  data.allocate(1, 600, Element::kByte);
  // 300 of 0 and 300 of 2: with columns taken for others the mean would not be 1.
  std::fill_n(data.values.as<std::uint8_t>() + 300, 300, std::uint8_t{2});
  const Standardizer standardizer = Standardizer::fit(data, Rows{0});
  CHECK(standardizer.means() == std::vector<float>{1});
  CHECK(standardizer.inverse_stds() == std::vector<float>{1});
}

TEST_CASE("standardizer: missing values take no part, and become the mean, which is 0") {
  Dataset data = table(4, {1, NAN, 3, NAN, NAN, NAN, 100, 5});
  data.has_missing = true;
  const Standardizer standardizer = Standardizer::fit(data, Rows{0, 1, 2});
  CHECK(standardizer.means() == std::vector<float>{2, 0});
  CHECK(standardizer.inverse_stds() == std::vector<float>{1, 1});
  std::vector<float> row = {NAN, 7};
  standardizer.fill(row);
  CHECK(applied(standardizer, row) == std::vector<float>{0, 7});
  // Without a missing value, the two ways to measure agree.
  Dataset whole = table(4, {1, 2, 3, 5, 8, 9, 100, 5});
  const Standardizer usual = Standardizer::fit(whole, Rows{0, 1, 2, 3});
  whole.has_missing = true;
  const Standardizer by_column = Standardizer::fit(whole, Rows{0, 1, 2, 3});
  CHECK(by_column.means() == usual.means());
  for (std::size_t j = 0; j < 2; ++j) {
    CHECK(by_column.inverse_stds()[j] ==
          doctest::Approx(usual.inverse_stds()[j]).epsilon(2 * 0x1p-24));
  }
}

TEST_CASE("standardizer: a constant column keeps its unit") {
  // 0.1 is not a binary fraction: the mean of three is not exactly 0.1, a naive deviation not
  // exactly 0.
  const Dataset data = table(4, {0.1f, 5, 0.1f, 6, 0.1f, 7, 9, 9});
  const Standardizer standardizer = Standardizer::fit(data, Rows{0, 1, 2});
  CHECK(standardizer.inverse_stds()[0] == 1.0f);
  CHECK(applied(standardizer, {0.1f, 6}) == std::vector<float>{0, 0});
  CHECK(applied(standardizer, {1.1f, 6})[0] == doctest::Approx(1.0));
}

TEST_CASE("standardizer: images share one mean and one scale") {
  Dataset data;
  data.image = {1, 2, 1};
  data.allocate(2, 2, Element::kByte);
  const std::uint8_t pixels[] = {0, 0, 10, 30};
  std::copy_n(pixels, 4, data.values.as<std::uint8_t>());
  const Standardizer standardizer = Standardizer::fit(data, Rows{0, 1});
  CHECK(standardizer.means() == std::vector<float>{10});
  // Variance (100 + 100 + 0 + 400) / 4 = 150.
  CHECK(standardizer.inverse_stds()[0] == doctest::Approx(1.0 / std::sqrt(150.0)));
  CHECK(applied(standardizer, {10, 10}) == std::vector<float>{0, 0});
  // Two columns, each constant, but not the same: the image is not constant.
  const Standardizer one_row = Standardizer::fit(data, Rows{1});
  CHECK(one_row.inverse_stds()[0] == doctest::Approx(0.1));
}

TEST_CASE("standardizer: square roots of pixels are what is measured and standardised") {
  Dataset data;
  data.name = "pixels";
  data.image = {1, 2, 1};
  data.allocate(2, 2, Element::kByte);
  const std::uint8_t pixels[] = {0, 4, 16, 100};  // roots 0, 2, 4, 10
  std::copy_n(pixels, 4, data.values.as<std::uint8_t>());
  const Standardizer standardizer = Standardizer::fit(data, Rows{0, 1}, PixelScale::kSquareRoot);
  CHECK(standardizer.means() == std::vector<float>{4});
  // Variance (16 + 4 + 0 + 36) / 4 = 14.
  const auto inverse_std = static_cast<float>(1.0 / std::sqrt(14.0));
  CHECK(standardizer.inverse_stds() == std::vector<float>{inverse_std});
  CHECK(applied(standardizer, {16, 0}) == std::vector<float>{0, -4 * inverse_std});
  const Standardizer restored(standardizer.means(), standardizer.inverse_stds(),
                              PixelScale::kSquareRoot);
  CHECK(applied(restored, {81, 1}) == applied(standardizer, {81, 1}));
  // Numbers that are no pixels may be negative.
  CHECK(contains(
      refusal([] { Standardizer::fit(open_dataset("digits"), Rows{0}, PixelScale::kSquareRoot); }),
      "'digits' holds no pixels of 8 bits"));
  CHECK(contains(refusal([] { parse_pixel_scale("cubic"); }), "'cubic' found, linear or sqrt"));
}

TEST_CASE("standardizer: extreme numbers give finite results") {
  const float max = std::numeric_limits<float>::max();
  const float tiny = std::numeric_limits<float>::denorm_min();
  for (const auto& values : {std::vector<float>{max, -max}, {0, tiny}, {1, 1 + 1e-7f}, {max, 1}}) {
    const Standardizer standardizer = Standardizer::fit(table(2, values), Rows{0, 1});
    CHECK(std::isfinite(standardizer.means()[0]));
    CHECK(std::isfinite(standardizer.inverse_stds()[0]));
    for (float x : {max, -max, tiny, 0.0f}) CHECK(std::isfinite(applied(standardizer, {x})[0]));
  }
}

TEST_CASE("standardizer: saved vectors give the same results; threads change nothing") {
  const Dataset data = open_dataset("wdbc");
  Rows rows(569);
  std::iota(rows.begin(), rows.end(), 0);
  set_thread_count(1);
  const Standardizer one = Standardizer::fit(data, rows);
  set_thread_count(4);
  const Standardizer four = Standardizer::fit(data, rows);
  set_thread_count(0);
  CHECK(one.means() == four.means());
  CHECK(one.inverse_stds() == four.inverse_stds());
  const Standardizer restored(one.means(), one.inverse_stds());
  std::vector<float> row(30);
  data.gather(7, row.data());
  CHECK(applied(one, row) == applied(restored, row));
}

TEST_CASE("standardizer: vectors that cannot be right are refused") {
  CHECK(contains(refusal([] { Standardizer({1, 2}, {1}); }), "2 means and 1 inverse"));
  CHECK(contains(refusal([] { Standardizer({}, {}); }), "0 means"));
  CHECK(contains(refusal([] { Standardizer({NAN}, {1}); }), "must be finite"));
  CHECK(contains(refusal([] { Standardizer({1, 2}, {1, 1}).check_features(3); }), "fitted to 2"));
  CHECK(contains(refusal([] { Standardizer::fit(table(1, {1}), Rows{}); }), "no training rows"));
}

}  // namespace
}  // namespace tritgrad::test::test_standardizer
