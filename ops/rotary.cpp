#include "ops/rotary.h"

#include <algorithm>
#include <cmath>

#include "engine/kernels/layers.h"
#include "engine/kernels/reductions.h"
#include "ops/columns.h"

namespace tritgrad {
namespace {

// A turn by an angle, in double.
struct Turn {
  double cosine, sine;
};

Turn turn_by(double angle) { return {std::cos(angle), std::sin(angle)}; }

Turn both(const Turn& a, const Turn& b) {
  return {a.cosine * b.cosine - a.sine * b.sine, a.sine * b.cosine + a.cosine * b.sine};
}

// The turn of a position is that of a multiple of kTurnStep and that of the rest: so few cosines
// serve many positions. What that rounds is far below half a unit of a float.
constexpr std::int64_t kTurnStep = 16;

double frequency(std::int64_t pair, std::int64_t size) {
  return std::pow(kRotaryBase, -2.0 * static_cast<double>(pair) / static_cast<double>(size));
}
Turn multiple_of_step(std::int64_t position, double turning) {
  return turn_by(static_cast<double>(position / kTurnStep * kTurnStep) * turning);
}
Turn rest_of_step(std::int64_t position, double turning) {
  return turn_by(static_cast<double>(position % kTurnStep) * turning);
}

// The turns of all pairs of a head at all positions [positions x pairs].
struct TurnTable {
  float* cosines;
  float* sines;
  std::int64_t pairs;
};

// The table, in scratch: as it is, or of the inverse turns, by which gradients go back.
TurnTable turn_table(Tape& tape, std::int64_t tokens, std::int64_t size, bool inverse) {
  const std::int64_t pairs = size / 2;
  const TurnTable table{tape.allocate_scratch<float>(tokens * pairs),
                        tape.allocate_scratch<float>(tokens * pairs), pairs};
  parallel_for(pairs, [&](std::int64_t pair) {
    const double turning = frequency(pair, size);
    Turn rests[kTurnStep];
    for (std::int64_t i = 0; i < kTurnStep; ++i) rests[i] = rest_of_step(i, turning);
    Turn multiple{};
    for (std::int64_t i = 0; i < tokens; ++i) {
      if (i % kTurnStep == 0) multiple = multiple_of_step(i, turning);
      const Turn turn = both(multiple, rests[i % kTurnStep]);
      table.cosines[i * pairs + pair] = static_cast<float>(turn.cosine);
      table.sines[i * pairs + pair] = static_cast<float>(inverse ? -turn.sine : turn.sine);
    }
  });
  return table;
}

// Turns all heads of a row at a position.
void rotate_row(const TurnTable& table, std::int64_t position, float* row, std::int64_t cols) {
  for (std::int64_t begin = 0; begin < cols; begin += 2 * table.pairs) {
    kernels().layers.rotate_pairs(row + begin, table.cosines + position * table.pairs,
                                  table.sines + position * table.pairs, table.pairs);
  }
}

void check_heads(const Var& x, std::int64_t heads, std::int64_t tokens) {
  check(heads > 0 && x.value.cols() % (2 * heads) == 0, "rotary: x has shape ", x.shape().str(),
        ", whose rows are not ", heads, " heads of an even size");
  check(tokens > 0 && x.value.rows() % tokens == 0, "rotary: x has shape ", x.shape().str(),
        ", whose rows are not sequences of ", tokens, " tokens");
}

}  // namespace

Var rotary(Tape& tape, const Var& x, std::int64_t heads, std::int64_t tokens) {
  check_heads(x, heads, tokens);
  const std::int64_t cols = x.value.cols(), size = cols / heads;
  const TurnTable table = turn_table(tape, tokens, size, false);
  const Var y = tape.variable(x.shape(), x.wants_grad());
  for_each_row(x.value, [&](std::int64_t i) {
    std::copy_n(x.value.row(i), cols, y.value.row(i));
    rotate_row(table, i % tokens, y.value.row(i), cols);
  });
  tape.scratch_reset();
  if (!x.wants_grad()) return y;
  tape.record(y, {}, {}, [&tape, x, y, tokens, cols, size] {
    const Tensor dy = tape.grad_of(y);
    const TurnTable inverse = turn_table(tape, tokens, size, true);
    const GradientTarget dx = tape.target_in_place(x, y);
    for_each_row(dy, [&](std::int64_t i) {
      rotate_row(inverse, i % tokens, dy.row(i), cols);
      if (!dx.fresh) kernels().reductions.add_scaled(dx.grad.row(i), dy.row(i), 1.0f, cols);
    });
  });
  return y;
}

void rotate(float* x, std::int64_t heads, std::int64_t size, std::int64_t position) {
  for (std::int64_t pair = 0; pair < size / 2; ++pair) {
    const double turning = frequency(pair, size);
    const Turn turn = both(multiple_of_step(position, turning), rest_of_step(position, turning));
    const auto cosine = static_cast<float>(turn.cosine), sine = static_cast<float>(turn.sine);
    for (std::int64_t head = 0; head < heads; ++head) {
      kernels().layers.rotate_pairs(x + head * size + 2 * pair, &cosine, &sine, 1);
    }
  }
}

}  // namespace tritgrad
