// MicroAdam's error feedback with codes of 4 bits, the usual width, packed in vectors; all others
// go through feedback_loops-inl.h.
#pragma once

#include "ops/kernels/simd-inl.h"
#include "ops/kernels/updates/feedback_loops-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace wide {
namespace {

constexpr std::int64_t kNibbles = kLanes<U8>;

// Returns how many of n codes fill vectors.
inline std::int64_t whole_nibbles(int bits, std::int64_t n) {
  return bits == 4 ? n / kNibbles * kNibbles : 0;
}

void add_feedback(float* out, const float* grad, const Feedback& feedback, std::int64_t n) {
  std::uint8_t levels[kMostFeedback];
  const std::int64_t whole = whole_nibbles(feedback.bits, n);
  for (std::int64_t i = 0; i < whole; i += kNibbles) {
    write(levels + i, read_nibbles(feedback.codes + i / 2));
  }
  unpack_feedback(levels + whole, feedback.codes + whole / 2, feedback.bits, n - whole);
  add_levels(out, grad, levels, feedback, n);
}

void store_feedback(const Feedback& feedback, const float* x, const std::uint16_t* noise,
                    std::int64_t n) {
  std::uint8_t levels[kMostFeedback];
  choose_levels(levels, x, feedback, noise, n);
  const std::int64_t whole = whole_nibbles(feedback.bits, n);
  for (std::int64_t i = 0; i < whole; i += kNibbles) {
    write_nibbles(feedback.codes + i / 2, read<U8>(levels + i));
  }
  pack_feedback(feedback.codes + whole / 2, levels + whole, feedback.bits, n - whole);
}

}  // namespace
}  // namespace wide
}  // namespace tritgrad::TRITGRAD_TARGET
