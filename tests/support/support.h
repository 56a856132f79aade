// Shared by tests: deterministic numbers, parameters made by hand, and gradient checks.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <string>
#include <vector>

#include "engine/parameter.h"
#include "engine/tape.h"

namespace tritgrad::test {

// Numbers in [-1, 1) that depend on `salt` and the index alone.
inline std::vector<float> numbers(std::int64_t n, std::uint32_t salt) {
  std::vector<float> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 2.0f * random_uniform({7, salt, 0}, i) - 1.0f;
  }
  return values;
}

inline FormatSpec spec_of(FormatKind kind, Rounding rounding = Rounding::kNearest) {
  FormatSpec spec;
  spec.kind = kind;
  spec.rounding = rounding;
  return spec;
}

inline Parameter make_parameter(const std::string& name, Role role, const Shape& shape,
                                const FormatSpec& format, float amount = 1.0f,
                                std::uint64_t seed = 1) {
  return Parameter({name, role, shape, format, {Initial::Kind::kUniform, amount}}, seed);
}

inline std::vector<double> decoded(const Storage& storage, bool master = false) {
  const Shape& shape = storage.shape();
  std::vector<double> values;
  for_each_block(shape, [&](const Block& block) {
    std::vector<float> out(static_cast<std::size_t>(block.n));
    master ? storage.decode_master(block, out.data()) : storage.decode_value(block, out.data());
    values.insert(values.end(), out.begin(), out.end());
  });
  return values;
}

// Updates one block.
inline FlipCounts descend_block(Storage& storage, const Block& block, const Direction& direction,
                                const Descent& descent) {
  return storage.descend({{block}, {&direction, 1}, descent});
}

inline void encode_all(Storage& storage, const std::vector<float>& master) {
  const std::int64_t cols = storage.shape().cols();
  for_each_block(storage.shape(), [&](const Block& block) {
    storage.encode(block, master.data() + block.row * cols + block.col, {});
  });
  storage.refresh();
}

// All bytes that a storage holds as they lie in files, plane after plane.
inline std::vector<std::byte> all_bytes(const Storage& storage) {
  std::vector<std::byte> bytes;
  for (const Plane& plane : storage.planes()) {
    plane.order.for_each_piece(plane.bytes, [&](std::span<const std::byte> piece) {
      bytes.insert(bytes.end(), piece.begin(), piece.end());
    });
  }
  return bytes;
}

// ---- gradients
// -----------------------------------------------------------------------------------

using Complex = std::complex<double>;

// The scalar that gradients are taken of: L = sum_i c_i y_i + d_i y_i^2 / 2 with irregular c and d.
// A plain sum is symmetric in the elements of y and would hide exchanged indices and wrong signs
// that cancel.
inline double coefficient(std::size_t i, std::uint32_t salt) {
  return 0.25 + static_cast<double>(random_uniform({11, salt, 0}, i)) * (i % 2 == 0 ? 1.0 : -1.0);
}

template <typename T>
T asymmetric_scalar(const std::vector<T>& y) {
  T sum = 0.0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    sum += coefficient(i, 1) * y[i] + 0.5 * coefficient(i, 2) * y[i] * y[i];
  }
  return sum;
}

inline Var asymmetric_scalar(Tape& tape, const Var& y) {
  const Var loss = tape.variable({1});
  std::vector<double> values(y.value.values().begin(), y.value.values().end());
  loss.value.data[0] = static_cast<float>(asymmetric_scalar(values));
  const Tensor dy = tape.tensor(y.shape());
  for (std::size_t i = 0; i < values.size(); ++i) {
    dy.data[i] = static_cast<float>(coefficient(i, 1) + coefficient(i, 2) * values[i]);
  }
  tape.record(loss, {}, {}, [&tape, y, loss, dy] {
    const float dloss = *tape.grad_of(loss).data;
    const Tensor grad = tape.grad_to(y);
    for (std::int64_t i = 0; i < dy.size(); ++i) grad.data[i] += dloss * dy.data[i];
  });
  return loss;
}

// dL/dinput by the complex step: f(x + i h) with h = 1e-50 has imaginary part h f'(x); nothing is
// subtracted, so the result is exact to double rounding.
inline std::vector<double> complex_step_gradient(
    const std::function<Complex(const std::vector<Complex>&)>& f, const std::vector<double>& x) {
  constexpr double kStep = 1e-50;
  std::vector<Complex> point(x.begin(), x.end());
  std::vector<double> gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    point[i].imag(kStep);
    gradient[i] = f(point).imag() / kStep;
    point[i].imag(0.0);
  }
  return gradient;
}

// Largest |a - b| as a multiple of what fp32 rounding may cause: each element is a sum of at most
// `terms` products of numbers of size <= scale (the largest element of b, at least 1), and every
// operation adds a relative error of 2^-24. The factor 4 covers the roundings inside an op's
// forward pass that its backward pass reads. A result <= 1 passes; a wrong sign or index is of
// order 2^24/terms.
inline double gradient_error(const std::vector<float>& a, const std::vector<double>& b,
                             std::int64_t terms) {
  REQUIRE(a.size() == b.size());
  double scale = 1.0;
  double worst = 0.0;
  for (double value : b) scale = std::max(scale, std::abs(value));
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return worst / (4.0 * static_cast<double>(terms + 16) * 0x1p-24 * scale);
}

}  // namespace tritgrad::test
