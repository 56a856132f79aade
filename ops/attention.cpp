#include "ops/attention.h"

#include <algorithm>

#include "engine/kernels/attention.h"
#include "engine/memory/parallel.h"

namespace tritgrad {
namespace {

void check_attention(const Var& q, const Var& k, const Var& v, const AttentionShape& shape) {
  check(shape.heads > 0 && shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0,
        "causal_attention: ", shape.heads, " heads found and ", shape.kv_heads,
        " of keys; a number that divides that of heads is needed");
  const std::int64_t size = q.value.cols() / shape.heads;
  check(size > 0 && q.value.cols() % shape.heads == 0 && size <= kMostHeadSize,
        "causal_attention: q has shape ", q.shape().str(), ", whose rows are not ", shape.heads,
        " heads of 1 to ", kMostHeadSize, " elements");
  const Shape keys{q.value.rows(), shape.kv_heads * size};
  check(k.shape() == keys && v.shape() == keys, "causal_attention: k has shape ", k.shape().str(),
        " and v ", v.shape().str(), ", but ", keys.str(), " belongs to q and ", shape.kv_heads,
        " heads of keys");
  check(shape.tokens > 0 && q.value.rows() % shape.tokens == 0, "causal_attention: q has shape ",
        q.shape().str(), ", whose rows are not sequences of ", shape.tokens, " tokens");
}

// One op's tensors, and where the parts of a head lie in them.
struct AttentionParts {
  AttentionShape shape;
  std::int64_t sequences, size;
  Tensor q, k, v, y;
  SoftmaxRows rows;  // [sequences x heads x tokens]

  std::int64_t group() const { return shape.heads / shape.kv_heads; }
  AttentionHead head() const {
    return {shape.tokens, size, shape.heads * size, shape.kv_heads * size};
  }
  float* of_head(const Tensor& x, std::int64_t sequence, std::int64_t h) const {
    return x.row(sequence * shape.tokens) + h * size;
  }
  AttentionInputs inputs(std::int64_t sequence, std::int64_t h) const {
    return {of_head(q, sequence, h), of_head(k, sequence, h / group()),
            of_head(v, sequence, h / group())};
  }
  SoftmaxRows rows_of(std::int64_t sequence, std::int64_t h) const {
    const std::int64_t first = (sequence * shape.heads + h) * shape.tokens;
    return {rows.largest + first, rows.inverse_sum + first};
  }
};

void attention_forward(const AttentionParts& parts) {
  parallel_for(parts.sequences * parts.shape.heads, [&](std::int64_t unit) {
    const std::int64_t sequence = unit / parts.shape.heads, h = unit % parts.shape.heads;
    kernels().attention.attend_head(parts.of_head(parts.y, sequence, h), parts.rows_of(sequence, h),
                                    parts.inputs(sequence, h), parts.head());
  });
}

// Zeros in the part of a gradient that belongs to one head of keys, where nothing is yet.
void begin_gradient(const AttentionParts& parts, const GradientTarget& target,
                    std::int64_t sequence, std::int64_t kv_head) {
  if (!target.fresh) return;
  float* row = parts.of_head(target.grad, sequence, kv_head);
  for (std::int64_t i = 0; i < parts.shape.tokens; ++i) {
    std::fill_n(row + i * target.grad.cols(), parts.size, 0.0f);
  }
}

// A unit of work has one head of keys of one sequence, and adds the shares of the heads that read
// it in their order.
void attention_backward(const AttentionParts& parts, const Tensor& dy, const GradientTarget& dq,
                        const GradientTarget& dk, const GradientTarget& dv) {
  const std::int64_t kv_heads = parts.shape.kv_heads;
  parallel_for(parts.sequences * kv_heads, [&](std::int64_t unit) {
    const std::int64_t sequence = unit / kv_heads, kv_head = unit % kv_heads;
    begin_gradient(parts, dk, sequence, kv_head);
    begin_gradient(parts, dv, sequence, kv_head);
    for (std::int64_t i = 0; i < parts.group(); ++i) {
      const std::int64_t h = kv_head * parts.group() + i;
      const AttentionGradients gradients{parts.of_head(dq.grad, sequence, h),
                                         parts.of_head(dk.grad, sequence, kv_head),
                                         parts.of_head(dv.grad, sequence, kv_head), !dq.fresh};
      kernels().attention.attend_head_gradient(
          gradients, parts.of_head(dy, sequence, h), parts.of_head(parts.y, sequence, h),
          parts.rows_of(sequence, h), parts.inputs(sequence, h), parts.head());
    }
  });
}

// Where the gradient of an input goes: for a constant, which wants none, to scratch.
GradientTarget target_or_scratch(Tape& tape, const Var& x) {
  if (x.wants_grad()) return tape.target(x);
  return {tape.scratch(x.shape()), true};
}

}  // namespace

Var causal_attention(Tape& tape, const Var& q, const Var& k, const Var& v,
                     const AttentionShape& shape) {
  check_attention(q, k, v, shape);
  const Var y = tape.variable(q.shape(), q.wants_grad() || k.wants_grad() || v.wants_grad());
  const std::int64_t rows = q.value.rows() * shape.heads;
  const AttentionParts parts{shape,
                             q.value.rows() / shape.tokens,
                             q.value.cols() / shape.heads,
                             q.value,
                             k.value,
                             v.value,
                             y.value,
                             {tape.allocate<float>(rows), tape.allocate<float>(rows)}};
  attention_forward(parts);
  if (!y.wants_grad()) return y;
  tape.record(y, {q, k, v, y}, {}, [&tape, q, k, v, y, parts] {
    const Tensor dy = tape.grad_of(y);
    const GradientTarget dk = target_or_scratch(tape, k), dv = target_or_scratch(tape, v);
    const GradientTarget dq =
        q.wants_grad() ? tape.target_in_place(q, y) : target_or_scratch(tape, q);
    attention_backward(parts, dy, dq, dk, dv);
  });
  return y;
}

void attend(const float* q, const float* keys, const float* values, std::int64_t positions,
            std::int64_t heads, std::int64_t kv_heads, std::int64_t size, float* y) {
  const AttentionHead head{positions, size, size, kv_heads * size};
  // Enough products for a thread.
  constexpr std::int64_t kWorthAThread = 1 << 17;
  const std::int64_t together = kWorthAThread / std::max<std::int64_t>(1, positions * size);
  parallel_ranges(heads, together, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t h = begin; h < end; ++h) {
      const std::int64_t from = h / (heads / kv_heads) * size;
      kernels().attention.attend_query(y + h * size, {q + h * size, keys + from, values + from},
                                       head);
    }
  });
}

}  // namespace tritgrad
