#include "ops/embedding.h"

#include <limits>

#include "engine/kernels/reductions.h"
#include "ops/columns.h"

namespace tritgrad {
namespace {

void check_tokens(std::span<const std::int32_t> tokens, const Parameter& table) {
  const std::int64_t vocabulary = table.shape().rows();
  check(!tokens.empty(), "embedding: no tokens found, at least one expected");
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocabulary) continue;
    fail("embedding: token ", tokens[i], " at place ", i, " is outside 0..", vocabulary - 1,
         ", the rows of '", table.name(), "'; take the vocabulary that the model was made for");
  }
}

// Returns a bound of the magnitudes in the table's gradient: all rows of dy, added up. It is
// infinite where to look through the gradient costs no more than to go over dy.
double table_gradient_bound(const Parameter& table, const Tensor& dy) {
  if (table.shape().size() <= dy.size()) return std::numeric_limits<double>::infinity();
  const double largest = kernels().reductions.max_abs(dy.data, dy.size());
  return largest * static_cast<double>(dy.rows());
}

// Adds the rows of dy to those of the table. Each thread has columns of its own, and goes down all
// rows, so that sums have one order.
void scatter(const Tensor& dtable, const Tensor& dy, std::span<const std::int32_t> tokens) {
  constexpr std::int64_t kColumns = 64;
  parallel_ranges(dy.cols(), kColumns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < dy.rows(); ++i) {
      prefetch_after(dy, i, begin, end - begin);
      float* to = dtable.row(tokens[static_cast<std::size_t>(i)]) + begin;
      kernels().reductions.add_scaled(to, dy.row(i) + begin, 1.0f, end - begin);
    }
  });
}

}  // namespace

Var embedding(Tape& tape, std::span<const std::int32_t> tokens, Parameter& table) {
  check_tokens(tokens, table);
  const Var y = tape.variable({static_cast<std::int64_t>(tokens.size()), table.shape().cols()});
  for_each_row(y.value, [&](std::int64_t i) {
    const std::int32_t token = tokens[static_cast<std::size_t>(i)];
    table.storage().decode_rows(token, token + 1, y.value.row(i));
  });
  tape.record(y, {}, {&table}, [&tape, &table, tokens, y] {
    const Tensor dy = tape.grad_of(y);
    scatter(tape.gradient(table, table_gradient_bound(table, dy)), dy, tokens);
  });
  return y;
}

}  // namespace tritgrad
