#include "ops/loss.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/columns.h"

namespace tritgrad {
namespace {

// softmax(in) to out; returns log sum exp(in).
double softmax_row(const float* in, float* out, std::int64_t n) {
  const float largest = *std::max_element(in, in + n);
  double sum = 0.0;
  for (std::int64_t j = 0; j < n; ++j) {
    out[j] = std::exp(in[j] - largest);
    sum += static_cast<double>(out[j]);
  }
  const float inverse = static_cast<float>(1.0 / sum);
  for (std::int64_t j = 0; j < n; ++j) out[j] *= inverse;
  return static_cast<double>(largest) + std::log(sum);
}

// out[j] += scale * (p[j] - share); the arrays do not overlap.
void add_centered(float* __restrict out, const float* __restrict p, float share, float scale,
                  std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) out[j] += scale * (p[j] - share);
}

double mean(const float* row, std::int64_t n) {
  double sum = 0.0;
  for (std::int64_t j = 0; j < n; ++j) sum += static_cast<double>(row[j]);
  return sum / static_cast<double>(n);
}

Var scalar(Tape& tape, double value, bool wants_grad) {
  const Var loss = tape.variable({1}, wants_grad);
  loss.value.data[0] = static_cast<float>(value);
  return loss;
}

void check_labels(const Var& logits, std::span<const std::int32_t> labels) {
  const std::int64_t n = logits.value.rows();
  const std::int64_t classes = logits.value.cols();
  check(static_cast<std::int64_t>(labels.size()) == n && n > 0,
        "softmax_cross_entropy: logits have shape ", logits.shape().str(), " but there are ",
        labels.size(), " labels");
  for (std::size_t i = 0; i < labels.size(); ++i) {
    check(labels[i] >= 0 && labels[i] < classes, "softmax_cross_entropy: label ", labels[i],
          " of row ", i, " is outside 0..", classes - 1);
  }
}

void check_weights(std::span<const float> class_weights, std::int64_t classes) {
  check(class_weights.empty() || std::ssize(class_weights) == classes,
        "softmax_cross_entropy: ", class_weights.size(), " class weights found, ", classes,
        " expected");
  for (const float weight : class_weights) {
    check(std::isfinite(weight) && weight >= 0.0f, "softmax_cross_entropy: class weight ", weight,
          " found, a finite number of 0 or more expected");
  }
}

}  // namespace

Var softmax_cross_entropy(Tape& tape, const Var& logits, std::span<const std::int32_t> labels,
                          double smoothing, std::span<const float> class_weights) {
  const std::int64_t n = logits.value.rows();
  const std::int64_t classes = logits.value.cols();
  check_labels(logits, labels);
  check(smoothing >= 0.0 && smoothing < 1.0, "softmax_cross_entropy: smoothing ", smoothing,
        " found, 0 or more and below 1 expected");
  check_weights(class_weights, classes);
  const auto weight_of = [labels, class_weights](std::int64_t row) {
    if (class_weights.empty()) return 1.0f;
    return class_weights[static_cast<std::size_t>(labels[static_cast<std::size_t>(row)])];
  };

  const Tensor probabilities = tape.tensor(logits.shape());
  const double total = parallel_sum(n, 64, [&](std::int64_t begin, std::int64_t end) {
    double sum = 0.0;
    for (std::int64_t i = begin; i < end; ++i) {
      const float* row = logits.value.row(i);
      const auto label_logit = static_cast<double>(row[labels[static_cast<std::size_t>(i)]]);
      const auto weight = static_cast<double>(weight_of(i));
      sum += weight * (softmax_row(row, probabilities.row(i), classes) - label_logit);
      if (smoothing > 0.0) sum += weight * smoothing * (label_logit - mean(row, classes));
    }
    return sum;
  });

  const Var loss = scalar(tape, total / static_cast<double>(n), logits.wants_grad());
  if (!logits.wants_grad()) return loss;
  tape.record(loss, {}, {}, [&tape, logits, probabilities, labels, smoothing, loss, weight_of] {
    const std::int64_t rows = logits.value.rows(), columns = logits.value.cols();
    const float mean_scale = tape.grad_of(loss).data[0] / static_cast<float>(rows);
    const auto uniform_share = static_cast<float>(smoothing / static_cast<double>(columns));
    const auto label_share = static_cast<float>(1.0 - smoothing);
    const GradientTarget target = tape.target(logits);
    for_each_row(probabilities, [&](std::int64_t i) {
      const float scale = mean_scale * weight_of(i);
      float* dlogits = target.grad.row(i);
      if (target.fresh) std::fill_n(dlogits, columns, 0.0f);
      add_centered(dlogits, probabilities.row(i), uniform_share, scale, columns);
      dlogits[labels[static_cast<std::size_t>(i)]] -= scale * label_share;
    });
  });
  return loss;
}

double sum_cross_entropy(const Tensor& logits, std::span<const std::int32_t> labels) {
  const std::int64_t classes = logits.cols();
  check_labels({logits}, labels);
  return parallel_sum(logits.rows(), 64, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> probabilities(static_cast<std::size_t>(classes));
    double sum = 0.0;
    for (std::int64_t i = begin; i < end; ++i) {
      const float* row = logits.row(i);
      sum += softmax_row(row, probabilities.data(), classes) -
             static_cast<double>(row[labels[static_cast<std::size_t>(i)]]);
    }
    return sum;
  });
}

Var mean_squared_error(Tape& tape, const Var& prediction, const Tensor& target) {
  check(prediction.shape() == target.shape && target.size() > 0,
        "mean_squared_error: the prediction has shape ", prediction.shape().str(),
        " but the target has shape ", target.shape.str());
  const std::int64_t n = target.size();
  const double total = parallel_sum(n, kElementsPerUnit, [&](std::int64_t begin, std::int64_t end) {
    double sum = 0.0;
    for (std::int64_t i = begin; i < end; ++i) {
      const double error =
          static_cast<double>(prediction.value.data[i]) - static_cast<double>(target.data[i]);
      sum += error * error;
    }
    return sum;
  });

  const Var loss = scalar(tape, total / static_cast<double>(n), prediction.wants_grad());
  if (!prediction.wants_grad()) return loss;
  tape.record(loss, {prediction}, {}, [&tape, prediction, target, loss, n] {
    const float scale = 2.0f * tape.grad_of(loss).data[0] / static_cast<float>(n);
    const Tensor grad = tape.grad_to(prediction);
    for (std::int64_t i = 0; i < n; ++i) {
      grad.data[i] += scale * (prediction.value.data[i] - target.data[i]);
    }
  });
  return loss;
}

std::int64_t count_correct(const Tensor& logits, std::span<const std::int32_t> labels) {
  std::int64_t correct = 0;
  for (std::int64_t i = 0; i < logits.rows(); ++i) {
    const float* row = logits.row(i);
    const auto best = std::max_element(row, row + logits.cols()) - row;
    correct += best == labels[static_cast<std::size_t>(i)];
  }
  return correct;
}

}  // namespace tritgrad
