// One op under test: its gradients on a tape against those of a reference on complex numbers.
#pragma once

#include <algorithm>
#include <cmath>

#include "tests/support/support.h"

namespace tritgrad::test {

using Values = std::vector<Complex>;

// Inputs are x first, then the parameters' values, all concatenated.
struct OpCase {
  std::string name;
  std::vector<Parameter*> parameters;
  std::function<Var(Tape&, const Var&)> op;
  std::function<Complex(const Values&)> reference;  // of the concatenated inputs, to the scalar L
  Shape x_shape = {7, 11};
  bool makes_loss = false;
  std::int64_t terms = 77;
};

struct Gradients {
  std::vector<std::vector<float>> of;  // x, then parameters
};

inline Gradients tape_gradients(const OpCase& c, std::vector<float>& x_values) {
  Tape tape;
  Var x = tape.variable(c.x_shape);
  std::copy(x_values.begin(), x_values.end(), x.value.data);
  const Var y = c.op(tape, x);
  const Var loss = c.makes_loss ? y : asymmetric_scalar(tape, y);
  // Values that the op has not asked for may be gone by now.
  for (const Var& value : {x, y}) {
    if (!value.note->is_read) value.value.fill(std::nanf(""));
  }
  Gradients gradients;
  gradients.of.resize(1 + c.parameters.size());
  tape.backward(loss, [&](Parameter& parameter) {
    for (std::size_t i = 0; i < c.parameters.size(); ++i) {
      if (c.parameters[i] != &parameter) continue;
      gradients.of[1 + i].assign(parameter.grad.values().begin(), parameter.grad.values().end());
    }
  });
  gradients.of[0].assign(x.grad().values().begin(), x.grad().values().end());
  return gradients;
}

inline void check_case(const OpCase& c, std::uint32_t salt = 3) {
  CAPTURE(c.name);
  std::vector<float> x = numbers(c.x_shape.size(), salt);
  std::vector<double> point(x.begin(), x.end());
  for (Parameter* parameter : c.parameters) {
    const std::vector<double> values = decoded(parameter->storage());
    point.insert(point.end(), values.begin(), values.end());
  }
  const std::vector<double> expected = complex_step_gradient(c.reference, point);
  const Gradients actual = tape_gradients(c, x);
  std::size_t offset = 0;
  for (std::size_t i = 0; i < actual.of.size(); ++i) {
    const std::size_t n = actual.of[i].size();
    CAPTURE(i);
    REQUIRE(n > 0);
    REQUIRE(offset + n <= expected.size());
    const std::vector<double> part(expected.begin() + static_cast<std::ptrdiff_t>(offset),
                                   expected.begin() + static_cast<std::ptrdiff_t>(offset + n));
    CHECK(gradient_error(actual.of[i], part, c.terms) <= 1.0);
    std::vector<float> wrong = actual.of[i];
    const auto largest = std::max_element(
        wrong.begin(), wrong.end(), [](float a, float b) { return std::abs(a) < std::abs(b); });
    *largest = -*largest;  // a sign error that is planted must be caught
    CHECK(gradient_error(wrong, part, c.terms) > 1.0);
    offset += n;
  }
  CHECK(offset == expected.size());
}

// Elements of x, from `first` on, as a value of their own, for ops with several inputs.
inline Var part_of(Tape& tape, const Var& x, std::int64_t first, const Shape& shape) {
  const Var y = tape.variable(shape);
  std::copy_n(x.value.data + first, y.value.size(), y.value.data);
  tape.record(y, {}, {}, [&tape, x, y, first] {
    const Tensor dx = tape.grad_to(x), dy = tape.grad_of(y);
    for (std::int64_t i = 0; i < dy.size(); ++i) dx.data[first + i] += dy.data[i];
  });
  return y;
}
// Spoils the inputs that the op which has just been recorded does not read in backward.
inline void forget_unread(std::initializer_list<Var> inputs) {
  for (const Var& x : inputs) {
    if (!x.note->is_read) x.value.fill(std::nanf(""));
  }
}

// Cases of ops that have test files of their own, for the list of all ops that are tested.
using VisitOpCase = std::function<void(const OpCase&)>;
namespace test_add {
void for_each_add_case(const VisitOpCase& visit);
}
namespace test_attention {
void for_each_attention_case(const VisitOpCase& visit);
}
namespace test_conv2d {
void for_each_conv2d_case(const VisitOpCase& visit);
}
namespace test_embedding {
void for_each_embedding_case(const VisitOpCase& visit);
}
namespace test_pool {
void for_each_pool_case(const VisitOpCase& visit);
}
namespace test_reshape {
void for_each_reshape_case(const VisitOpCase& visit);
}
namespace test_rotary {
void for_each_rotary_case(const VisitOpCase& visit);
}
namespace test_swiglu {
void for_each_swiglu_case(const VisitOpCase& visit);
}

}  // namespace tritgrad::test
