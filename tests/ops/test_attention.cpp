// Causal attention: grouped heads, gradients, threads, memory, and one query against kept keys.
#include "engine/memory/ledger.h"
#include "engine/memory/parallel.h"
#include "ops/attention.h"
#include "tests/support/exact_attention.h"
#include "tests/support/op_cases.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_attention {
namespace {

struct Extents {
  AttentionShape shape;
  std::int64_t sequences, size;

  std::int64_t rows() const { return sequences * shape.tokens; }
  Shape q() const { return {rows(), shape.heads * size}; }
  Shape k() const { return {rows(), shape.kv_heads * size}; }
};

// The head of a sequence in x [sequences * tokens, heads * size], which begins at element `first`.
template <typename T>
HeadRows<T> head_of(const std::vector<T>& x, std::int64_t first, const Extents& e,
                    std::int64_t heads, std::int64_t sequence, std::int64_t head) {
  HeadRows<T> rows(e.shape.tokens, e.size);
  for (std::int64_t i = 0; i < e.shape.tokens; ++i) {
    for (std::int64_t c = 0; c < e.size; ++c) {
      const std::int64_t row = sequence * e.shape.tokens + i;
      rows(i, c) = x[static_cast<std::size_t>(first + (row * heads + head) * e.size + c)];
    }
  }
  return rows;
}

// Calls body(sequence, head, its q, k and v) for elements of q, k and v that follow each other.
template <typename T, typename Body>
void for_each_head(const std::vector<T>& qkv, const Extents& e, const Body& body) {
  for (std::int64_t sequence = 0; sequence < e.sequences; ++sequence) {
    for (std::int64_t head = 0; head < e.shape.heads; ++head) {
      const std::int64_t kv_head = head / (e.shape.heads / e.shape.kv_heads);
      const std::int64_t k = e.q().size(), v = k + e.k().size();
      body(sequence, head, head_of(qkv, 0, e, e.shape.heads, sequence, head),
           head_of(qkv, k, e, e.shape.kv_heads, sequence, kv_head),
           head_of(qkv, v, e, e.shape.kv_heads, sequence, kv_head));
    }
  }
}

Values reference(const Values& qkv, const Extents& e) {
  Values y(static_cast<std::size_t>(e.q().size()));
  for_each_head(
      qkv, e,
      [&](std::int64_t sequence, std::int64_t head, const auto& q, const auto& k, const auto& v) {
        const auto rows = exact_attention(q, k, v);
        for (std::int64_t i = 0; i < e.shape.tokens; ++i) {
          for (std::int64_t c = 0; c < e.size; ++c) {
            const std::int64_t row = sequence * e.shape.tokens + i;
            y[static_cast<std::size_t>((row * e.shape.heads + head) * e.size + c)] = rows(i, c);
          }
        }
      });
  return y;
}

struct Attended {
  std::vector<float> y, dq, dk, dv;
  friend bool operator==(const Attended&, const Attended&) = default;
};

std::vector<float> copied(const Tensor& x) { return {x.values().begin(), x.values().end()}; }

// With the gradient cos(i) of element i of y.
Attended attended(const std::vector<float>& qkv, const Extents& e) {
  Tape tape;
  const Var x = tape.variable({static_cast<std::int64_t>(qkv.size())});
  std::copy(qkv.begin(), qkv.end(), x.value.data);
  const std::int64_t at_k = e.q().size(), at_v = at_k + e.k().size();
  const Var q = part_of(tape, x, 0, e.q()), k = part_of(tape, x, at_k, e.k());
  const Var v = part_of(tape, x, at_v, e.k());
  const Var y = causal_attention(tape, q, k, v, e.shape);
  const Var loss = tape.variable({1});
  tape.record(loss, {}, {}, [&tape, y] {
    const Tensor dy = tape.target(y).grad;
    for (std::int64_t i = 0; i < dy.size(); ++i) dy.data[i] = std::cos(static_cast<float>(i));
  });
  const std::vector<float> value = copied(y.value);
  tape.backward(loss, [](Parameter&) {});
  const std::vector<float> dx = copied(x.grad());
  return {value,
          {dx.begin(), dx.begin() + at_k},
          {dx.begin() + at_k, dx.begin() + at_v},
          {dx.begin() + at_v, dx.end()}};
}

std::vector<float> numbers_for(const Extents& e, std::uint32_t salt) {
  return numbers(e.q().size() + 2 * e.k().size(), salt);
}

}  // namespace

void for_each_attention_case(const VisitOpCase& visit) {
  for (const Extents& e : {Extents{{1, 1, 1}, 2, 4}, Extents{{2, 2, 5}, 2, 4},
                           Extents{{4, 2, 6}, 1, 2}, Extents{{3, 1, 4}, 2, 6}}) {
    const std::int64_t k = e.q().size(), v = k + e.k().size();
    OpCase c{"causal_attention",
             {},
             [=](Tape& t, const Var& x) {
               return causal_attention(t, part_of(t, x, 0, e.q()), part_of(t, x, k, e.k()),
                                       part_of(t, x, v, e.k()), e.shape);
             },
             [=](const Values& qkv) { return asymmetric_scalar(reference(qkv, e)); }};
    c.x_shape = {v + e.k().size()};
    // Sums of each row's products with up to 6 others, for up to three heads; weights and means
    // are such sums too.
    c.terms = 3 * 6 * 6 + 77;
    visit(c);
  }
  // Of one value: nothing may get lost where all gradients go to the same memory.
  OpCase same{"causal_attention",
              {},
              [](Tape& t, const Var& x) {
                return causal_attention(t, x, x, x, {2, 2, 5});
              },
              [](const Values& x) {
                Values qkv = x;
                for (int i = 0; i < 2; ++i) qkv.insert(qkv.end(), x.begin(), x.end());
                return asymmetric_scalar(reference(qkv, {{2, 2, 5}, 2, 3}));
              }};
  same.x_shape = {10, 6};
  same.terms = 200;
  visit(same);
}

TEST_CASE("attention: grouped heads read their head of keys, and bounds of exact values hold") {
  const Extents e{{6, 3, 70}, 2, 8};
  const std::vector<float> qkv = numbers_for(e, 1);
  const Attended actual = attended(qkv, e);
  for_each_head(
      std::vector<double>(qkv.begin(), qkv.end()), e,
      [&](std::int64_t sequence, std::int64_t head, const auto& q, const auto& k, const auto& v) {
        const BoundedAttention expected = bounded_attention(q, k, v, q);
        const auto rows = head_of(actual.y, 0, e, e.shape.heads, sequence, head);
        for (std::size_t i = 0; i < rows.elements.size(); ++i) {
          const double exact = expected.y.exact.elements[i];
          REQUIRE(std::abs(double{rows.elements[i]} - exact) <=
                  expected.y.bound.elements[i] + 0x1p-24 * std::abs(exact));
        }
      });
}

TEST_CASE("attention: one query against kept keys gives the rows of the op, within their bounds") {
  for (const Extents& e : {Extents{{4, 2, 70}, 1, 32}, Extents{{2, 1, 9}, 1, 6}}) {
    const std::vector<float> qkv = numbers_for(e, 2);
    const std::int64_t width = e.q().cols();
    const float* keys = qkv.data() + e.q().size();
    const float* values = keys + e.k().size();
    std::vector<float> y(static_cast<std::size_t>(e.q().size()));
    for (std::int64_t i = 0; i < e.shape.tokens; ++i) {
      attend(qkv.data() + i * width, keys, values, i + 1, e.shape.heads, e.shape.kv_heads, e.size,
             y.data() + i * width);
    }
    const Attended whole = attended(qkv, e);
    for_each_head(
        std::vector<double>(qkv.begin(), qkv.end()), e,
        [&](std::int64_t, std::int64_t head, const auto& q, const auto& k, const auto& v) {
          const BoundedAttention expected = bounded_attention(q, k, v, q);
          const auto rows = head_of(y, 0, e, e.shape.heads, 0, head);
          const auto others = head_of(whole.y, 0, e, e.shape.heads, 0, head);
          for (std::size_t i = 0; i < rows.elements.size(); ++i) {
            // Each of the two is off by its bound at most, and rounded.
            REQUIRE(std::abs(double{rows.elements[i]} - double{others.elements[i]}) <=
                    2.0 * (expected.y.bound.elements[i] +
                           0x1p-24 * std::abs(expected.y.exact.elements[i])));
          }
        });
  }
}

TEST_CASE("attention: the same bits for any number of threads, and without a record") {
  const Extents e{{6, 2, 130}, 3, 16};
  const std::vector<float> qkv = numbers_for(e, 3);
  set_thread_count(1);
  const Attended one = attended(qkv, e);
  for (const int threads : {2, 3}) {
    set_thread_count(threads);
    CHECK(attended(qkv, e) == one);
  }
  set_thread_count(0);
  Tape tape;
  tape.set_recording(false);
  std::vector<float> numbers = qkv;
  const Tensor q{numbers.data(), e.q()}, k{numbers.data() + q.size(), e.k()};
  const Tensor v{k.data + k.size(), e.k()};
  const Var y =
      causal_attention(tape, tape.constant(q), tape.constant(k), tape.constant(v), e.shape);
  CHECK_FALSE(y.wants_grad());
  CHECK(copied(y.value) == one.y);
}

TEST_CASE("attention: memory grows with the length of a sequence, not with its square") {
  const auto bytes = [](std::int64_t tokens) {
    const Extents e{{1, 1, tokens}, 1, 8};
    const std::int64_t before = ledger::live_total();
    Tape tape;
    const Var x = tape.variable(e.q());
    x.value.fill(0.5f);
    const Var y = causal_attention(tape, x, x, x, e.shape);
    tape.backward(asymmetric_scalar(tape, y), [](Parameter&) {});
    return ledger::live_total() - before;
  };
  // Scores alone would be 64 MiB. x, y, their gradients and those of the test, of 128 KiB each.
  CHECK(bytes(4096) <= 16 * 4096 * 8 * 4);
}

TEST_CASE("attention: a NaN reaches every row that sees it, in its heads alone") {
  const Extents e{{4, 2, 70}, 2, 4};
  const std::vector<float> healthy = numbers_for(e, 4);
  constexpr std::int64_t kRow = 70 + 66, kKvHead = 1, kKvHeads = 2;  // of the second sequence
  for (const std::int64_t tensor : {0, 1}) {
    std::vector<float> qkv = healthy;
    const std::int64_t first = e.q().size() + tensor * e.k().size();
    qkv[static_cast<std::size_t>(first + (kRow * kKvHeads + kKvHead) * e.size)] = std::nanf("");
    const Attended sick = attended(qkv, e);
    for (std::int64_t i = 0; i < e.q().size(); ++i) {
      const std::int64_t row = i / e.q().cols(), head = i % e.q().cols() / e.size;
      const bool element = tensor == 0 || i % e.size == 0;  // of v only its column
      const bool nan = std::isnan(sick.y[static_cast<std::size_t>(i)]);
      if (row >= kRow && head / 2 == kKvHead && element) REQUIRE(nan);
      if (row < 70 || head / 2 != kKvHead) REQUIRE_FALSE(nan);
    }
  }
}

TEST_CASE("attention: what does not fit is refused") {
  Tape tape;
  const Var q = tape.variable({6, 12}), k = tape.variable({6, 6}), other = tape.variable({6, 4});
  CHECK(refusal([&] {
          causal_attention(tape, q, k, k, {4, 3, 3});
        }) ==
        "causal_attention: 4 heads found and 3 of keys; a number that divides that of heads "
        "is needed");
  CHECK(refusal([&] {
          causal_attention(tape, q, k, k, {5, 1, 3});
        }) ==
        "causal_attention: q has shape [6 x 12], whose rows are not 5 heads of 1 to 256 "
        "elements");
  CHECK(refusal([&] {
          causal_attention(tape, q, k, other, {4, 2, 3});
        }) ==
        "causal_attention: k has shape [6 x 6] and v [6 x 4], but [6 x 6] belongs to q and 2 "
        "heads of keys");
  CHECK(refusal([&] {
          causal_attention(tape, q, k, k, {4, 2, 4});
        }) == "causal_attention: q has shape [6 x 12], whose rows are not sequences of 4 tokens");
  const Var wide = tape.variable({2, 257});
  CHECK(contains(refusal([&] {
                   causal_attention(tape, wide, wide, wide, {1, 1, 2});
                 }),
                 "whose rows are not 1 heads of 1 to 256 elements"));
}

}  // namespace tritgrad::test::test_attention
