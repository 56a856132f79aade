// Attention of one head: every table, the reference too, against exact values in double.
#include <doctest/doctest.h>

#include "engine/kernels/attention.h"
#include "tests/support/exact_attention.h"
#include "tests/support/kernel_inputs.h"

namespace tritgrad::test::test_kernel_attention {
namespace {

// Rows of a head with a gap behind each, which nobody may write to.
class GappedRows {
 public:
  GappedRows(std::int64_t tokens, std::int64_t size, std::int64_t ld, float fill)
      : tokens_(tokens), size_(size), ld_(ld), memory_(tokens * ld, 1) {
    for (std::int64_t i = 0; i < tokens * ld; ++i) {
      memory_[i] = i % ld < size ? fill : kGap;
    }
  }
  GappedRows(const HeadRows<double>& rows, std::int64_t ld)
      : GappedRows(rows.tokens, rows.size, ld, 0.0f) {
    for (std::int64_t i = 0; i < tokens_ * size_; ++i) {
      memory_[i / size_ * ld + i % size_] =
          static_cast<float>(rows.elements[static_cast<std::size_t>(i)]);
    }
  }
  float* data() { return memory_.data(); }

  // Nothing but elements was written, and those are within their bounds, after `before` is taken
  // off.
  void require_within(const Bounded& expected, float before = 0.0f) {
    for (std::int64_t i = 0; i < tokens_ * ld_; ++i) {
      if (i % ld_ >= size_) {
        REQUIRE(memory_[i] == kGap);
        continue;
      }
      const double exact = expected.exact(i / ld_, i % ld_) + double{before};
      // What was there takes part in a rounding for each row at most, and the result is rounded.
      const double rounding =
          0x1p-24 * (std::abs(exact) + static_cast<double>(tokens_ + 1) * std::abs(double{before}));
      REQUIRE(std::abs(double{memory_[i]} - exact) <= expected.bound(i / ld_, i % ld_) + rounding);
    }
  }

 private:
  static constexpr float kGap = 12345.0f;
  std::int64_t tokens_, size_, ld_;
  Guarded<float> memory_;
};

HeadRows<double> random_rows(std::int64_t tokens, std::int64_t size, std::uint32_t stream,
                             float amplitude) {
  HeadRows<double> rows(tokens, size);
  for (std::size_t i = 0; i < rows.elements.size(); ++i) {
    rows.elements[i] = double{amplitude * (2.0f * random_uniform({7, stream, 0}, i) - 1.0f)};
  }
  return rows;
}

struct Case {
  HeadRows<double> q, k, v, dy;
  BoundedAttention expected;

  Case(std::int64_t tokens, std::int64_t size, float amplitude)
      : q(random_rows(tokens, size, 1, amplitude)),
        k(random_rows(tokens, size, 2, amplitude)),
        v(random_rows(tokens, size, 3, 1.0f)),
        dy(random_rows(tokens, size, 4, 1.0f)),
        expected(bounded_attention(q, k, v, dy)) {}
};

void check_table(const KernelTables& table, const Case& c) {
  const std::int64_t tokens = c.q.tokens, size = c.q.size;
  const AttentionHead head{tokens, size, size + 3, size + 5};
  GappedRows q(c.q, head.ld), k(c.k, head.ld_kv), v(c.v, head.ld_kv), dy(c.dy, head.ld);
  GappedRows y(tokens, size, head.ld, 0.0f), last(1, size, size + 1, 0.0f);
  Guarded<float> largest(tokens, 1), inverse_sum(tokens, 1);
  const SoftmaxRows rows{largest.data(), inverse_sum.data()};
  const AttentionInputs in{q.data(), k.data(), v.data()};
  table.attention.attend_head(y.data(), rows, in, head);
  y.require_within(c.expected.y);

  Bounded last_row(1, size);
  for (std::int64_t i = 0; i < size; ++i) {
    last_row.exact(0, i) = c.expected.y.exact(tokens - 1, i);
    last_row.bound(0, i) = c.expected.y.bound(tokens - 1, i);
  }
  table.attention.attend_query(last.data(), {q.data() + (tokens - 1) * head.ld, in.k, in.v}, head);
  last.require_within(last_row);

  GappedRows dq(tokens, size, head.ld, 2.0f), dk(tokens, size, head.ld_kv, 3.0f);
  GappedRows dv(tokens, size, head.ld_kv, -1.0f);
  table.attention.attend_head_gradient({dq.data(), dk.data(), dv.data(), true}, dy.data(), y.data(),
                                       rows, in, head);
  dq.require_within(c.expected.dq, 2.0f);
  dk.require_within(c.expected.dk, 3.0f);
  dv.require_within(c.expected.dv, -1.0f);
  // In the place of dy.
  table.attention.attend_head_gradient({dy.data(), dk.data(), dv.data(), false}, dy.data(),
                                       y.data(), rows, in, head);
  dy.require_within(c.expected.dq);
}

template <typename Body>
void for_each_table(const Body& body) {
  for (const KernelTables* table : supported_kernels()) {
    CAPTURE(std::string(table->name));
    body(*table);
  }
}

}  // namespace

TEST_CASE("kernel attention: heads of all sizes are within bounds of exact ones") {
  for (const std::int64_t size : {1, 2, 6, 16, 24, 32, 40, 64, 100}) {
    for (const std::int64_t tokens : {1, 7, 64, 70}) {
      CAPTURE(size);
      CAPTURE(tokens);
      const Case c(tokens, size, 1.0f);
      for_each_table([&](const KernelTables& table) { check_table(table, c); });
    }
  }
}

TEST_CASE("kernel attention: sequences of all lengths are within bounds of exact ones") {
  for (const std::int64_t tokens : {2, 8, 9, 31, 63, 65, 127, 128, 129, 200}) {
    CAPTURE(tokens);
    const Case c(tokens, 10, 2.0f);
    for_each_table([&](const KernelTables& table) { check_table(table, c); });
  }
  const Case largest(66, kMostHeadSize, 1.0f);
  for_each_table([&](const KernelTables& table) { check_table(table, largest); });
}

TEST_CASE("kernel attention: large scores, and bounds that say something") {
  const Case ordinary(130, 32, 1.0f), large(130, 32, 20.0f);
  for_each_table([&](const KernelTables& table) { check_table(table, large); });
  for (const Bounded* numbers : {&ordinary.expected.y, &ordinary.expected.dq, &ordinary.expected.dk,
                                 &ordinary.expected.dv}) {
    double most = 0.0, bound = 0.0;
    for (const double x : numbers->exact.elements) most = std::max(most, std::abs(x));
    for (const double x : numbers->bound.elements) bound = std::max(bound, x);
    CHECK(bound <= 1e-3 * most);
  }
}

// Scores of up to +-5e29: all weight is on the largest, so that y is a row of v.
TEST_CASE("kernel attention: scores that would overflow an exponential") {
  constexpr std::int64_t kTokens = 100, kSize = 4;
  HeadRows<double> q(kTokens, kSize), k(kTokens, kSize);
  const HeadRows<double> v = random_rows(kTokens, kSize, 3, 1.0f);
  for (std::int64_t i = 0; i < kTokens; ++i) {
    q(i, 0) = i % 2 == 0 ? 1e15 : -1e15;
    k(i, 0) = 1e13 * static_cast<double>(1 + i);  // the largest is the own one, or the first
  }
  for_each_table([&](const KernelTables& table) {
    const AttentionHead head{kTokens, kSize, kSize, kSize};
    GappedRows q_rows(q, kSize), k_rows(k, kSize), v_rows(v, kSize);
    GappedRows y(kTokens, kSize, kSize, 0.0f), dq(kTokens, kSize, kSize, 1.0f);
    GappedRows dk(kTokens, kSize, kSize, 0.0f), dv(kTokens, kSize, kSize, 0.0f);
    Guarded<float> largest(kTokens, 0), inverse_sum(kTokens, 0);
    const SoftmaxRows rows{largest.data(), inverse_sum.data()};
    const AttentionInputs in{q_rows.data(), k_rows.data(), v_rows.data()};
    table.attention.attend_head(y.data(), rows, in, head);
    for (std::int64_t i = 0; i < kTokens * kSize; ++i) {
      const std::int64_t row = i / kSize % 2 == 0 ? i / kSize : 0;
      REQUIRE(y.data()[i] == static_cast<float>(v(row, i % kSize)));
    }
    table.attention.attend_head_gradient({dq.data(), dk.data(), dv.data(), false}, y.data(),
                                         y.data(), rows, in, head);
    for (std::int64_t i = 0; i < kTokens * kSize; ++i) {
      REQUIRE(std::isfinite(dq.data()[i]));
      REQUIRE(std::isfinite(dk.data()[i]));
      REQUIRE(std::isfinite(dv.data()[i]));
    }
  });
}

}  // namespace tritgrad::test::test_kernel_attention
