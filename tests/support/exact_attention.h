// Causal attention of one head as its formulas say, and what floats may be off from it.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

namespace tritgrad::test {

// A head's rows, [tokens x size], dense.
template <typename T>
struct HeadRows {
  std::int64_t tokens, size;
  std::vector<T> elements;

  HeadRows(std::int64_t tokens_, std::int64_t size_)
      : tokens(tokens_), size(size_), elements(static_cast<std::size_t>(tokens_ * size_)) {}
  T& operator()(std::int64_t row, std::int64_t c) {
    return elements[static_cast<std::size_t>(row * size + c)];
  }
  const T& operator()(std::int64_t row, std::int64_t c) const {
    return elements[static_cast<std::size_t>(row * size + c)];
  }
};

inline double real_part(double x) { return x; }
inline double real_part(const std::complex<double>& x) { return x.real(); }

// The weights with which query i sees keys 0..i.
template <typename T>
std::vector<T> attention_weights(const HeadRows<T>& q, const HeadRows<T>& k, std::int64_t i) {
  std::vector<T> weights;
  double largest = -1e300;
  for (std::int64_t j = 0; j <= i; ++j) {
    T score = 0.0;
    for (std::int64_t c = 0; c < q.size; ++c) score += q(i, c) * k(j, c);
    weights.push_back(score / std::sqrt(static_cast<double>(q.size)));
    largest = std::max(largest, real_part(weights.back()));
  }
  T sum = 0.0;
  for (T& weight : weights) sum += weight = std::exp(weight - largest);
  for (T& weight : weights) weight /= sum;
  return weights;
}

template <typename T>
HeadRows<T> exact_attention(const HeadRows<T>& q, const HeadRows<T>& k, const HeadRows<T>& v) {
  HeadRows<T> y(q.tokens, q.size);
  for (std::int64_t i = 0; i < q.tokens; ++i) {
    const std::vector<T> weights = attention_weights(q, k, i);
    for (std::int64_t j = 0; j <= i; ++j) {
      for (std::int64_t c = 0; c < q.size; ++c) {
        y(i, c) += weights[static_cast<std::size_t>(j)] * v(j, c);
      }
    }
  }
  return y;
}

// Exact numbers, and the bound of what an implementation in floats may be off.
struct Bounded {
  HeadRows<double> exact, bound;

  Bounded(std::int64_t tokens, std::int64_t size) : exact(tokens, size), bound(tokens, size) {}
};

struct BoundedAttention {
  Bounded y, dq, dk, dv;
};

// y and the gradients where that of y is dy. Bounds are sums of the roundings of each step, to the
// first order, in units u = 2^-24 of its terms; a tenth is added for higher orders.
//
// A score s_ij, a sum of `size` products of a rounded q / sqrt(size), is off by (size + 4) u A_ij
// with A_ij = |q_i| . |k_j| / sqrt(size); the differences of which exponentials are taken round by
// 6 u of the largest A_ij at most, also where a larger score turns up tile after tile. Exponentials
// are within 2 u, and 3 u more for each tile that shrinks what was before. So numerator and sum of
// a weight are each off by S_i + (3 + 3 tiles) u, S_i = (size + 10) u max_j A_ij; the sum adds 64 +
// tiles roundings, the sum of weighted values `tokens` + tiles: relatively E_i in all.
// dp_ij = dy_i . v_j is off by (size + 1) u D_ij with D_ij = |dy_i| . |v_j|; its mean, dy_i . y_i,
// by (E_i + (size + 2) u) sum_j p_ij D_ij; ds_ij = p_ij (dp_ij - mean_i) / sqrt(size) by both, by
// E_i and three roundings of itself.
inline BoundedAttention bounded_attention(const HeadRows<double>& q, const HeadRows<double>& k,
                                          const HeadRows<double>& v, const HeadRows<double>& dy) {
  constexpr double u = 0x1p-24;
  const std::int64_t n = q.tokens, size = q.size;
  const double width = static_cast<double>(size), factor = 1.0 / std::sqrt(width);
  const double tokens = static_cast<double>(n), tiles = std::ceil(tokens / 64.0);
  const auto dot = [size](const HeadRows<double>& a, std::int64_t i, const HeadRows<double>& b,
                          std::int64_t j, bool magnitudes) {
    double sum = 0.0;
    for (std::int64_t c = 0; c < size; ++c) {
      sum += magnitudes ? std::abs(a(i, c) * b(j, c)) : a(i, c) * b(j, c);
    }
    return sum;
  };
  BoundedAttention result{{n, size}, {n, size}, {n, size}, {n, size}};
  for (std::int64_t i = 0; i < n; ++i) {
    const std::vector<double> p = attention_weights(q, k, i);
    double largest = 0.0, mean = 0.0, mean_of_magnitudes = 0.0;
    std::vector<double> dp, magnitudes;
    for (std::int64_t j = 0; j <= i; ++j) {
      const double weight = p[static_cast<std::size_t>(j)];
      largest = std::max(largest, factor * dot(q, i, k, j, true));
      dp.push_back(dot(dy, i, v, j, false));
      magnitudes.push_back(dot(dy, i, v, j, true));
      mean += weight * dp.back();
      mean_of_magnitudes += weight * magnitudes.back();
    }
    const double relative =
        1.1 * u *
        (2.0 * (width + 10.0) * largest + 2.0 * (3.0 + 3.0 * tiles) + 68.0 + tokens + 2.0 * tiles);
    const double sums = 1.1 * u * (tokens + 2.0 * tiles);
    const double mean_bound = (relative + 1.1 * u * (width + 2.0)) * mean_of_magnitudes;
    for (std::int64_t j = 0; j <= i; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const double centered = dp[at] - mean, ds = factor * p[at] * centered;
      const double ds_bound = factor * p[at] *
                              ((relative + 3.3 * u) * std::abs(centered) +
                               1.1 * u * (width + 1.0) * magnitudes[at] + mean_bound);
      for (std::int64_t c = 0; c < size; ++c) {
        const auto add = [](Bounded& to, std::int64_t row, std::int64_t column, double exact,
                            double bound) {
          to.exact(row, column) += exact;
          to.bound(row, column) += bound;
        };
        add(result.y, i, c, p[at] * v(j, c), relative * p[at] * std::abs(v(j, c)));
        add(result.dq, i, c, ds * k(j, c), (ds_bound + sums * std::abs(ds)) * std::abs(k(j, c)));
        add(result.dk, j, c, ds * q(i, c), (ds_bound + sums * std::abs(ds)) * std::abs(q(i, c)));
        add(result.dv, j, c, p[at] * dy(i, c), (relative + sums) * p[at] * std::abs(dy(i, c)));
      }
    }
  }
  return result;
}

}  // namespace tritgrad::test
