// Another shape of the same numbers: gradients, also beside another use, and memory that is shared.
#include "ops/activation.h"
#include "ops/reshape.h"
#include "tests/support/op_cases.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_reshape {

void for_each_reshape_case(const VisitOpCase& visit) {
  visit({"reshape",
         {},
         [](Tape& t, const Var& x) {
           const Var y = reshape(t, x, {1, 77});
           CHECK(y.shape() == Shape{1, 77});
           return y;
         },
         [](const Values& v) { return asymmetric_scalar(v); }});
  // x has another use, whose gradient is there first.
  OpCase twice{"reshape",
               {},
               [](Tape& t, const Var& x) {
                 const Var row = reshape(t, x, {77, 1});
                 const Var square = squared_relu(t, x);
                 const Var y = t.variable({2, 77});
                 std::copy_n(row.value.data, 77, y.value.data);
                 std::copy_n(square.value.data, 77, y.value.data + 77);
                 t.record(y, {}, {}, [&t, row, square, y] {
                   const Tensor dy = t.grad_of(y);
                   const Tensor first = t.grad_to(row), second = t.grad_to(square);
                   for (std::int64_t i = 0; i < 77; ++i) {
                     first.data[i] += dy.data[i];
                     second.data[i] += dy.data[77 + i];
                   }
                 });
                 return y;
               },
               [](const Values& v) {
                 Values y = v;
                 for (const Complex& x : v) y.push_back(x.real() > 0.0 ? x * x : Complex{});
                 return asymmetric_scalar(y);
               }};
  visit(twice);
}

TEST_CASE("reshape: y lies where x does, and that memory is nobody else's") {
  Tape tape;
  const Var leaf = tape.variable({6, 2});
  leaf.value.fill(1.0f);
  const Var x = relu(tape, leaf);
  const Var y = reshape(tape, x, {3, 4});
  CHECK(y.value.data == x.value.data);
  tape.release(x);
  tape.release(y);
  CHECK(tape.variable({3, 4}).value.data != y.value.data);
  Tape inference;
  inference.set_recording(false);
  const Var taken = reshape(inference, relu(inference, leaf), {4, 3});
  const float* memory = taken.value.data;
  inference.release(taken);
  CHECK(inference.variable({12, 1}).value.data == memory);
  const Var constant = reshape(tape, tape.constant(leaf.value), {12, 1});
  CHECK_FALSE(constant.wants_grad());
  CHECK(refusal([&] {
          reshape(tape, leaf, {5, 2});
        }) == "reshape: x has shape [6 x 2], of 12 elements, but [5 x 2] has 10");
}

}  // namespace tritgrad::test::test_reshape
