// Counts the live bytes of tensors, state and data, by what they are for. Thread-safe. Buffers,
// arenas and vectors of data report here when they are made and destroyed; nothing else does, so
// the sums are the truth about them and not an estimate. Not counted is what is small (names), what
// readers need while they read, and memory of others: mapped files, such as texts whose tokens are
// bytes, and arrays that are borrowed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tritgrad {

enum class Category {
  kWeights,    // what inference reads: trits, latent codes, fp32 values, biases, gains, statistics
  kScales,     // scales of ternary groups
  kResiduals,  // what an update could not express in the value: accumulators, correction planes
  kMoments,    // optimizer state
  kGradients,  // gradients of parameters
  kActivations,  // everything on the tape
  kWorkspace,    // scratch of kernels
  kData,         // data sets, orders of their rows, and batches
};
inline constexpr int kCategoryCount = 8;

// "weights", "scales", "residual", "moments", "gradients", "activations", "workspace", "data".
const char* category_name(Category category);

namespace ledger {

void acquire(Category category, std::size_t bytes);
void release(Category category, std::size_t bytes);

std::int64_t live(Category category);
// Returns the sum of all categories but the dataset: what training itself holds.
std::int64_t live_total();
// Returns the highest live_total() since the last reset_peak().
std::int64_t peak_total();
void reset_peak();

}  // namespace ledger
}  // namespace tritgrad
