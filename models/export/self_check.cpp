#include "models/export/self_check.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "engine/check.h"
#include "engine/memory/parallel.h"
#include "models/training/metric.h"
#include "models/training/task.h"

namespace tritgrad {
namespace {

std::int64_t predicted_class(std::span<const float> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

void compare_row(const InferenceNetwork& network, std::span<const float> expected,
                 std::span<const float> found, std::int32_t row, SelfCheck& result) {
  double largest = 0.0, difference = 0.0;
  bool numbers = true;
  const bool broken = !std::all_of(expected.begin(), expected.end(),
                                   [](float output) { return std::isfinite(output); });
  if (broken && result.broken_row < 0) result.broken_row = row;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto before = static_cast<double>(expected[i]), after = static_cast<double>(found[i]);
    largest = std::max(largest, std::abs(before));
    difference = std::max(difference, std::abs(before - after));
    numbers = numbers && std::isfinite(before) && std::isfinite(after);
  }
  result.rows += 1;
  result.differing_rows += !numbers || difference > network.tolerance(largest) ? 1 : 0;
  result.differing_classes += predicted_class(expected) != predicted_class(found) ? 1 : 0;
  result.largest_difference = std::max(result.largest_difference, difference);
}

// What the outputs of a row add to the sum of which the score is made: whether the class is right,
// or the squared error.
double share_of_score(const Dataset& dataset, std::int32_t row, std::span<const float> outputs,
                      const TargetScale& scale) {
  const auto at = static_cast<std::size_t>(row);
  if (!dataset.is_regression()) return predicted_class(outputs) == dataset.labels[at] ? 1.0 : 0.0;
  const double error = scale.in_units(outputs[0]) - dataset.targets[at];
  return error * error;
}

double score_of(const SelfCheck& result, double sum) {
  const double mean = sum / static_cast<double>(result.rows);
  return result.metric == Metric::kAccuracy ? mean : std::sqrt(mean);
}

// Returns the network's logits of these rows, each of which is a unit of work.
std::vector<std::vector<float>> infer_rows(const InferenceNetwork& network, const Dataset& dataset,
                                           std::span<const std::int32_t> rows) {
  std::vector<std::vector<float>> logits(rows.size());
  parallel_for(std::ssize(rows), [&](std::int64_t unit) {
    const auto i = static_cast<std::size_t>(unit);
    std::vector<float> features(static_cast<std::size_t>(dataset.features));
    dataset.gather(rows[i], features.data());
    logits[i] = infer(network, features);
  });
  return logits;
}

}  // namespace

SelfCheck check_network(const InferenceNetwork& network, const LoadedModel& loaded,
                        const Dataset& dataset, std::span<const std::int32_t> rows) {
  SelfCheck result;
  result.metric = metric_of(dataset);
  if (rows.empty()) return result;
  const std::unique_ptr<Task> task = make_task(dataset, loaded.standardizer, loaded.target_scale);
  Loader loader = task->test_batches(rows);
  Tape tape;
  tape.set_recording(false);
  double sum_before = 0.0, sum_after = 0.0;
  for (std::size_t first = 0; first < rows.size();) {
    const Batch batch = loader.next();
    const Tensor outputs = loaded.model->forward(tape, batch.x, {}).value;
    const auto of_batch = rows.subspan(first, static_cast<std::size_t>(outputs.rows()));
    const std::vector<std::vector<float>> found = infer_rows(network, dataset, of_batch);
    for (std::size_t i = 0; i < of_batch.size(); ++i) {
      const std::span<const float> expected(outputs.row(static_cast<std::int64_t>(i)),
                                            static_cast<std::size_t>(outputs.cols()));
      compare_row(network, expected, found[i], of_batch[i], result);
      sum_before += share_of_score(dataset, of_batch[i], expected, network.target_scale);
      sum_after += share_of_score(dataset, of_batch[i], found[i], network.target_scale);
    }
    first += of_batch.size();
    tape.reset();
  }
  result.score_before = score_of(result, sum_before);
  result.score_after = score_of(result, sum_after);
  return result;
}

void require_passed(const SelfCheck& result, const std::string& to, const std::string& data) {
  check(result.broken_row < 0, "export: the model's outputs of row ", result.broken_row + 1,
        " of '", data,
        "' are not finite, so it has probably diverged: train again with a lower --lr, or "
        "look for a cell of that row that is far out; '",
        to, "' is not written");
  check(result.passed(), "export: the self-check of '", to, "' failed: outputs of ",
        result.differing_rows, " of ", result.rows, " rows are not those of the model (by up to ",
        result.largest_difference, "); no file is written");
}

}  // namespace tritgrad
