// Layer norm and RMS norm of a row: every table against the reference and against the formulas.
#include <array>
#include <cmath>

#include "tests/support/kernel_comparison.h"

namespace tritgrad::test::test_kernel_row_norm {
namespace {

struct Row {
  Row(std::int64_t n, std::int64_t offset)
      : x(floats(n, offset, 1)), gain(floats(n, offset, 2)), bias(floats(n, offset, 3)) {}

  RowNorm norm() { return {0.75f, 1.3f, gain.data()}; }
  float z(std::int64_t i) { return (x[i] - 0.75f) * 1.3f; }

  Guarded<float> x, gain, bias;
};

// Sums of term(i) in interleaved lanes.
template <typename Term>
double sum_of(std::int64_t n, const Term& term) {
  std::array<double, kSumLanes> lanes{};
  for (std::int64_t i = 0; i < n; ++i) lanes[static_cast<std::size_t>(i % kSumLanes)] += term(i);
  return sum_of_lanes(lanes);
}

bool same(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b; }

TEST_CASE("kernel row norm: rows and gradients equal the reference and their formulas") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Row row(n, offset);
    Guarded<float> dy = floats(n, offset, 4);
    compare<float>(
        table, n, offset,
        [&](const KernelTables& t, float* y) {
          t.layers.row_norm(y, row.x.data(), row.norm(), row.bias.data(), n);
        },
        [&](std::int64_t i, float) { return row.z(i) * row.gain[i] + row.bias[i]; });
    compare<float>(
        table, n, offset,
        [&](const KernelTables& t, float* y) {
          t.layers.row_norm(y, row.x.data(), row.norm(), nullptr, n);
        },
        [&](std::int64_t i, float) { return row.z(i) * row.gain[i]; });
    compare<float>(
        table, n, offset,
        [&](const KernelTables& t, float* dx) {
          t.layers.row_norm_gradient(dx, row.x.data(), row.norm(), 0.3f, -0.2f, n);
        },
        [&](std::int64_t i, float before) {
          return 1.3f * (row.gain[i] * before - 0.3f - row.z(i) * -0.2f);
        });
    Guarded<float> other = floats(n, offset, 5);
    for (float* dbias : {static_cast<float*>(nullptr), other.data()}) {
      compare<float>(
          table, n, offset,
          [&](const KernelTables& t, float* dgain) {
            t.layers.add_row_norm_gradients(dgain, dbias, dy.data(), row.x.data(), row.norm(), n);
          },
          [&](std::int64_t i, float sum) { return sum + dy[i] * row.z(i); });
    }
    compare<float>(
        table, n, offset,
        [&](const KernelTables& t, float* dbias) {
          t.layers.add_row_norm_gradients(other.data(), dbias, dy.data(), row.x.data(), row.norm(),
                                          n);
        },
        [&](std::int64_t i, float sum) { return sum + dy[i]; });
  });
}

TEST_CASE("kernel row norm: sums of rows equal the reference and their formulas") {
  for_each_case([](const KernelTables& table, std::int64_t n, std::int64_t offset) {
    Row row(n, offset);
    Guarded<float> dy = floats(n, offset, 4);
    for (const bool finite : {false, true}) {
      for (std::int64_t i = 0; finite && i < n; ++i) {
        for (Guarded<float>* numbers : {&row.x, &row.gain, &dy}) {
          if (!(std::abs((*numbers)[i]) < 1e6f)) (*numbers)[i] = 1.0f;
        }
      }
      const double squares = sum_of(n, [&](std::int64_t i) {
        const double centered = double{row.x[i]} - 0.7;
        return centered * centered;
      });
      const auto dz = [&](std::int64_t i) { return double{row.gain[i] * dy[i]}; };
      const double sum_dz = sum_of(n, dz);
      const double sum_dz_z = sum_of(n, [&](std::int64_t i) { return dz(i) * double{row.z(i)}; });
      for (const KernelTables* t : {&reference_kernels(), &table}) {
        REQUIRE(same(t->reductions.sum_of_squares_around(row.x.data(), 0.7, n), squares));
        const RowNormSums sums = t->layers.row_norm_sums(dy.data(), row.x.data(), row.norm(), n);
        REQUIRE(same(sums.dz, sum_dz));
        REQUIRE(same(sums.dz_z, sum_dz_z));
      }
    }
  });
}

}  // namespace
}  // namespace tritgrad::test::test_kernel_row_norm
