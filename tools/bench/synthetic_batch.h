// Made-up rows for a perceptron, images for a convolutional network, or windows of made-up tokens
// for a language model, to be timed on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/data/loader.h"
#include "engine/memory/buffer.h"
#include "models/training/task.h"

namespace tritgrad {

// What a network that is timed reads and tells.
struct SyntheticTask {
  bool is_text;
  std::int64_t features;  // of a row, or tokens of a window
  std::int64_t outputs;   // classes, or different tokens: those of bytes
  // How often a row is multiplied by each matrix, of which those that are not here are once: of
  // convolutions, the pixels.
  std::vector<std::int64_t> uses = {};

  std::int64_t uses_of(std::size_t matrix) const { return matrix < uses.size() ? uses[matrix] : 1; }

  // Numbers and labels of one batch; of a text there is a label for each token.
  std::int64_t labels_per_row() const { return is_text ? features : 1; }
};

// Throws Error for a model that is neither a perceptron with all widths, nor a
// convolutional network with its images and classes, nor a transformer.
SyntheticTask synthetic_task(const std::string& model);

// The data set must outlive the task; it may be empty.
std::unique_ptr<Task> loss_of(const SyntheticTask& task, const Dataset& dataset);

class SyntheticBatch {
 public:
  SyntheticBatch(const SyntheticTask& task, std::int64_t rows);

  Batch whole() const;

 private:
  Buffer numbers_;
  Tensor x_;
  std::vector<std::int32_t> labels_;
  std::int64_t labels_per_row_;
};

}  // namespace tritgrad
