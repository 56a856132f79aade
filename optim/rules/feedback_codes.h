// Codes of the error feedback: b bits per element between the bounds of a bucket.
//
//     u = (high - low) / (2^b - 1)      code = floor((x - low) / u + r)      x' = low + code u
//
// r is 1/2 (to nearest) or a random number on [0, 1) (stochastic: E[x'] = x). The bounds are the
// bucket's minimum and maximum in bf16, rounded outwards, so every x lies between them and codes
// never leave [0, 2^b - 1]. A bucket with low = high decodes to it exactly.
#pragma once

#include <cstdint>

namespace tritgrad {

struct FeedbackBounds {
  std::uint16_t low = 0, high = 0;  // bf16
};

// Returns the bounds of n finite numbers.
FeedbackBounds feedback_bounds(const float* x, std::int64_t n);

// Writes elements first .. first + n of a stream of bits-wide codes, little-endian from byte 0 on.
// `guard` is added to high - low (a study's code did so; else 0); `noise` may be null.
void encode_feedback(std::uint8_t* codes, std::int64_t first, const float* x, std::int64_t n,
                     int bits, const FeedbackBounds& bounds, float guard,
                     const std::uint16_t* noise);
// Adds decoded elements: out[i] += x'[i].
void add_decoded_feedback(float* out, const std::uint8_t* codes, std::int64_t first, std::int64_t n,
                          int bits, const FeedbackBounds& bounds, float guard);

}  // namespace tritgrad
