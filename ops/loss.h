// Losses: scalars at the end of the tape.
#pragma once

#include <span>

#include "engine/tape.h"

namespace tritgrad {

// logits [n, classes], labels[n] in [0, classes) -> mean over n of -log softmax(logits)[label], in
// nats. The labels must outlive backward().
Var softmax_cross_entropy(Tape& tape, const Var& logits, std::span<const std::int32_t> labels);

// Mean over all elements of (prediction - target)^2; the target has the prediction's shape and no
// gradient.
Var mean_squared_error(Tape& tape, const Var& prediction, const Tensor& target);

// Rows whose largest logit (the first of equals) is that of the label.
std::int64_t count_correct(const Tensor& logits, std::span<const std::int32_t> labels);

}  // namespace tritgrad
