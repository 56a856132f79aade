// Codes of MicroAdam's error feedback.
#include <array>
#include <numeric>

#include "engine/formats/half_precision.h"
#include "optim/rules/feedback_codes.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_feedback_codes {

TEST_CASE("feedback codes: a bucket of one number decodes to it exactly, and codes stay in range") {
  for (float x : {0.0f, 0.5f, -3.0f, 0x1p-100f, 0x1p100f}) {
    for (int bits = 2; bits <= 8; ++bits) {
      const std::vector<float> values(7, x);
      const FeedbackBounds bounds = feedback_bounds(values.data(), 7);
      CHECK(bounds.low == bounds.high);
      std::vector<std::uint8_t> codes(8, 0xFF);
      encode_feedback(codes.data(), 0, values.data(), 7, bits, bounds, 0.0f, nullptr);
      std::vector<float> out(7, 0.0f);
      add_decoded_feedback(out.data(), codes.data(), 0, 7, bits, bounds, 0.0f);
      CHECK(out == values);
    }
  }
  // Bounds that bf16 does not hold are rounded outwards, also for the largest floats.
  const std::vector<float> odd = {1.0009765625f, -1.0009765625f, 3.3e38f, -3.3e38f, 1e-40f};
  for (std::size_t i = 0; i < odd.size(); ++i) {
    const FeedbackBounds bounds = feedback_bounds(odd.data() + i, 1);
    CHECK(float_of_bf16(bounds.low) <= odd[i]);
    CHECK(float_of_bf16(bounds.high) >= odd[i]);
  }
}

TEST_CASE("feedback codes: numbers are rounded up by as much of the noise as its fraction says") {
  const std::array<float, 2> ends = {-1.0f, 0.75f};  // bf16 numbers; zero is no level of any width
  const FeedbackBounds bounds = feedback_bounds(ends.data(), 2);
  for (int bits : {2, 4, 8}) {
    const double unit = 1.75 / ((1 << bits) - 1);
    for (float x : {-1.0f, -0.37f, 0.0f, 0.0003f, 0.5f, 0.75f}) {
      CAPTURE(bits);
      CAPTURE(x);
      const std::vector<float> values(0x10000, x);
      std::vector<std::uint16_t> noise(values.size());
      std::iota(noise.begin(), noise.end(), std::uint16_t{0});
      const auto decode = [&](const std::uint16_t* by) {
        std::vector<std::uint8_t> codes(values.size() + 1);
        std::vector<float> out(values.size(), 0.0f);
        const auto n = std::ssize(values);
        encode_feedback(codes.data(), 0, values.data(), n, bits, bounds, 0.0f, by);
        add_decoded_feedback(out.data(), codes.data(), 0, n, bits, bounds, 0.0f);
        return out;
      };
      double mean = 0.0;
      for (float y : decode(noise.data())) {
        mean += static_cast<double>(y) / 0x1p16;
        REQUIRE(std::abs(static_cast<double>(y - x)) <= unit * (1.0 + 0x1p-16));
      }
      // The level, at most 255, is computed to 3 * 2^-24 of itself, 3 of the 65536 numbers, and the
      // count is whole: 4 of them. What is decoded errs by 2^-24 of 1.
      CHECK(std::abs(mean - static_cast<double>(x)) <= 4 * 0x1p-16 * unit + 0x1p-23);
      CHECK(std::abs(static_cast<double>(decode(nullptr)[0] - x)) <= 0.5 * unit + 0x1p-22);
    }
  }
}

}  // namespace tritgrad::test::test_feedback_codes
