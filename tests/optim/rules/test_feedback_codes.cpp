// Codes of MicroAdam's error feedback.
#include <array>
#include <numeric>

#include "engine/formats/half_precision.h"
#include "engine/kernels/updates.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_feedback_codes {
namespace {

// One bucket.
class FeedbackBucket {
 public:
  FeedbackBucket(std::int64_t n, int bits)
      : n_(n), bits_(bits), codes_(static_cast<std::size_t>(n) + 1, 0xFF) {}

  // Encodes n numbers.
  void encode(const float* x, const std::uint16_t* noise) {
    kernels().updates.store_feedback(feedback(), x, noise, n_);
  }
  std::vector<float> decoded() {
    std::vector<float> out(static_cast<std::size_t>(n_)), zeros(out.size());
    kernels().updates.add_feedback(out.data(), zeros.data(), feedback(), n_);
    return out;
  }
  float low() const { return float_of_bf16(bounds_[0]); }
  float high() const { return float_of_bf16(bounds_[1]); }

 private:
  Feedback feedback() { return {codes_.data(), bounds_.data(), bits_, n_, 0.0f}; }

  std::int64_t n_;
  int bits_;
  std::vector<std::uint8_t> codes_;
  std::array<std::uint16_t, 2> bounds_{};
};

}  // namespace

TEST_CASE("feedback codes: a bucket of one number decodes to it exactly, and codes stay in range") {
  for (float x : {0.0f, 0.5f, -3.0f, 0x1p-100f, 0x1p100f}) {
    for (int bits = 2; bits <= 8; ++bits) {
      const std::vector<float> values(7, x);
      FeedbackBucket bucket(7, bits);
      bucket.encode(values.data(), nullptr);
      CHECK(bucket.low() == bucket.high());
      CHECK(bucket.decoded() == values);
    }
  }
  // Bounds that bf16 does not hold are rounded outwards, also for the largest floats.
  for (const float odd : {1.0009765625f, -1.0009765625f, 3.3e38f, -3.3e38f, 1e-40f}) {
    FeedbackBucket bucket(1, 4);
    bucket.encode(&odd, nullptr);
    CHECK(bucket.low() <= odd);
    CHECK(bucket.high() >= odd);
  }
}

TEST_CASE("feedback codes: numbers are rounded up by as much of the noise as its fraction says") {
  // The first two are the bounds, bf16 numbers; zero is no level of any width.
  constexpr std::int64_t kNumbers = kMostFeedback;
  for (int bits : {2, 4, 8}) {
    const double unit = 1.75 / ((1 << bits) - 1);
    for (float x : {-1.0f, -0.37f, 0.0f, 0.0003f, 0.5f, 0.75f}) {
      CAPTURE(bits);
      CAPTURE(x);
      std::vector<float> values(static_cast<std::size_t>(kNumbers), x);
      values[0] = -1.0f, values[1] = 0.75f;
      double mean = 0.0;
      for (int first = 0; first < 0x10000; first += kNumbers - 2) {
        std::vector<std::uint16_t> noise(values.size());
        std::iota(noise.begin() + 2, noise.end(), static_cast<std::uint16_t>(first));
        FeedbackBucket bucket(kNumbers, bits);
        bucket.encode(values.data(), noise.data());
        const std::vector<float> decoded = bucket.decoded();
        for (std::size_t i = 2; i < decoded.size() && first + static_cast<int>(i) < 0x10002; ++i) {
          mean += static_cast<double>(decoded[i]) / 0x1p16;
          REQUIRE(std::abs(static_cast<double>(decoded[i] - x)) <= unit * (1.0 + 0x1p-16));
        }
      }
      // The level, at most 255, is computed to 3 * 2^-24 of itself, 3 of the 65536 numbers, and the
      // count is whole: 4 of them. What is decoded errs by 2^-24 of 1.
      CHECK(std::abs(mean - static_cast<double>(x)) <= 4 * 0x1p-16 * unit + 0x1p-23);
      FeedbackBucket bucket(kNumbers, bits);
      bucket.encode(values.data(), nullptr);
      CHECK(std::abs(static_cast<double>(bucket.decoded()[2] - x)) <= 0.5 * unit + 0x1p-22);
    }
  }
}

}  // namespace tritgrad::test::test_feedback_codes
