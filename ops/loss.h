// Losses: scalars at the end of the tape.
#pragma once

#include <span>

#include "engine/tape.h"

namespace tritgrad {

// logits [n, classes], labels[n] in [0, classes) -> the mean over n of -sum_j t_j log
// softmax(logits)_j, in nats, where t is 1 at the label and 0 elsewhere, or, with a smoothing s in
// [0, 1), (1 - s) of that and s / classes everywhere (Szegedy et al. 2016, section 7). With class
// weights [classes], finite and 0 or more, the sum of each row counts times the weight of its
// label; the mean is still over n, so that parts of a batch add up to the loss of the whole. Labels
// and weights must outlive backward(). Throws Error for another number of labels or none, for
// another number of weights, and for a label, smoothing or weight out of range.
Var softmax_cross_entropy(Tape& tape, const Var& logits, std::span<const std::int32_t> labels,
                          double smoothing = 0.0, std::span<const float> class_weights = {});

// Returns the sum over rows of -log softmax(logits)[label], in nats. Throws Error as
// softmax_cross_entropy() does.
double sum_cross_entropy(const Tensor& logits, std::span<const std::int32_t> labels);

// The mean over all elements of (prediction - target)^2; the target has no gradient. Throws Error
// unless it has the prediction's shape and elements.
Var mean_squared_error(Tape& tape, const Var& prediction, const Tensor& target);

// Counts the rows whose largest logit (the first of equals) is that of the label.
std::int64_t count_correct(const Tensor& logits, std::span<const std::int32_t> labels);

}  // namespace tritgrad
