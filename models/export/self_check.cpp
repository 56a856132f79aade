#include "models/export/self_check.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "engine/check.h"
#include "engine/memory/parallel.h"
#include "models/training/task.h"

namespace tritgrad {
namespace {

std::int64_t predicted_class(std::span<const float> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

void compare_row(const InferenceNetwork& network, std::span<const float> expected,
                 std::span<const float> found, std::int32_t row, std::int32_t label,
                 SelfCheck& result) {
  double largest = 0.0, difference = 0.0;
  bool numbers = true;
  const bool broken = !std::all_of(expected.begin(), expected.end(),
                                   [](float logit) { return std::isfinite(logit); });
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
  result.accuracy_before += predicted_class(expected) == label ? 1.0 : 0.0;
  result.accuracy_after += predicted_class(found) == label ? 1.0 : 0.0;
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
                        const Dataset& dataset, const std::vector<std::int32_t>& rows) {
  SelfCheck result;
  if (rows.empty()) return result;
  const Classification task(dataset, loaded.standardizer);
  Loader loader = task.test_batches(rows);
  Tape tape;
  tape.set_recording(false);
  for (std::size_t first = 0; first < rows.size();) {
    const Batch batch = loader.next();
    const Tensor logits = loaded.model->forward(tape, batch.x, {}).value;
    const auto of_batch = std::span(rows).subspan(first, static_cast<std::size_t>(logits.rows()));
    const std::vector<std::vector<float>> found = infer_rows(network, dataset, of_batch);
    for (std::size_t i = 0; i < of_batch.size(); ++i) {
      compare_row(
          network,
          {logits.row(static_cast<std::int64_t>(i)), static_cast<std::size_t>(logits.cols())},
          found[i], of_batch[i], batch.labels[i], result);
    }
    first += of_batch.size();
    tape.reset();
  }
  result.accuracy_before /= static_cast<double>(result.rows);
  result.accuracy_after /= static_cast<double>(result.rows);
  return result;
}

void require_passed(const SelfCheck& result, const std::string& to, const std::string& data) {
  check(result.broken_row < 0, "export: the model's logits of row ", result.broken_row + 1, " of '",
        data,
        "' are not finite, so it has probably diverged: train again with a lower --lr, or "
        "look for a cell of that row that is far out; '",
        to, "' is not written");
  check(result.passed(), "export: the self-check of '", to, "' failed: logits of ",
        result.differing_rows, " of ", result.rows, " rows are not those of the model (by up to ",
        result.largest_difference, "); no file is written");
}

}  // namespace tritgrad
