// The numbers of a curve are right on curves that are made up for it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/formats/half_precision.h"
#include "engine/random.h"
#include "tests/support/support_files.h"
#include "tools/report/statistics.h"
#include "tools/study/study_run.h"

namespace tritgrad::test::test_reproduce_numbers {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("reproduce: a period is found where there is one, and not in noise") {
  std::vector<double> noise, periodic;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const double value = 1.0 + static_cast<double>(random_uniform({3, 1, 0}, i));
    noise.push_back(value);
    periodic.push_back(value * std::pow(0.9, static_cast<double>((i + 1) % 10)));
  }
  const PhaseRatio flat = phase_ratio(noise, 1, 7), wave = phase_ratio(periodic, 1, 7);
  // The phases span 0.9^9 = 1 / 2.58. ln of the noise has a deviation of 0.20, the mean of a
  // phase's 400 values 0.01; both ends may be off by five of them.
  CHECK(wave.ratio == doctest::Approx(std::pow(0.9, -9)).epsilon(0.1));
  CHECK(flat.ratio < 1.1);
  const std::vector<double> means = phase_means(periodic, 1, 10);
  CHECK(std::max_element(means.begin(), means.end()) == means.begin());
}

TEST_CASE("reproduce: what belongs to the place in an epoch is no period of ten") {
  std::vector<double> values;  // the last of eight batches is different
  for (int step = 1; step <= 4000; ++step) values.push_back(step % 8 == 0 ? 0.1 : 1.0);
  CHECK(phase_ratio(values, 1, 8).ratio == doctest::Approx(1.0));
  CHECK(phase_ratio(values, 1, 1).ratio > 1.5);
}

TEST_CASE("reproduce: a beat of steps and epochs is found where there is one") {
  std::vector<double> noise, beating;
  for (std::uint64_t epoch = 0; epoch < 1000; ++epoch) {
    const double value = std::exp(0.1 * static_cast<double>(random_normal({3, 2, 0}, epoch)));
    noise.push_back(value);
    beating.push_back(value * (epoch % 5 == 0 ? 1.5 : 1.0));
  }
  StepTrace trace;
  trace.steps_per_epoch = 8;  // 40 steps are five epochs and four windows
  Curve flat, wave;
  flat.numbers = measure_curve(noise, trace);
  wave.numbers = measure_curve(beating, trace);
  CHECK(wave.numbers.beat == 5);
  CHECK(wave.numbers.beat_correlation > wave.numbers.beat_noise);
  CHECK(std::abs(flat.numbers.beat_correlation) < flat.numbers.beat_noise);
}

TEST_CASE("reproduce: the end of a curve is its last epochs, of which none decides alone") {
  std::vector<double> losses(100, 7.0);
  for (std::size_t i = 80; i < 100; ++i) losses[i] = i % 2 == 0 ? 0.02 : 0.08;
  CHECK(end_loss(losses) == doctest::Approx(0.04));
  CHECK(end_loss({0.02, 0.08}) == doctest::Approx(0.04));  // shorter than the window
  losses[85] = kNan;
  CHECK(std::isnan(end_loss(losses)));
  CHECK(std::isnan(end_loss({})));
  // A loss that cannot be resolved is exactly the bound, by which it is told.
  CHECK(end_loss({1e-9, 0.0, 1e-30}) == kResolvedLoss);
}

TEST_CASE("reproduce: updates are measured in the epochs whose oscillation is measured") {
  std::vector<double> losses(20, 0.5);
  StepTrace trace;
  trace.epoch_length = std::vector<double>(20, 0.1);
  trace.epoch_length[1] = 100.0;  // in the first tenth
  trace.epoch_length[7] = 0.2;
  trace.epoch_length[8] = 0.05;
  losses[19] = 1e-9;
  trace.epoch_length[19] = 100.0;  // when nothing is left to learn
  CHECK(measure_curve(losses, trace).update_length == doctest::Approx(0.1));
}

TEST_CASE("reproduce: buckets of equal numbers are counted, zeros apart") {
  GroupSpec group;
  group.rule.kind = RuleKind::kMicroadam;
  group.rule.density = 1.0 / 128;
  group.rule.bucket = 64;
  group.rule.feedback_bits = 4;
  ParameterStore store;
  ParameterSpec spec{"w", Role::kWeight, Shape{1, 128}, FormatSpec{}, Initial{}};
  Parameter& parameter = store.add(spec, 1);
  Optimizer optimizer(
      store, [&](const ParameterSpec&) { return group; }, 10, 1);
  ConstantBuckets buckets(optimizer);
  CHECK(buckets.count().buckets == 2);
  CHECK(buckets.count().zero_at_start == 2);
  // The one element that the window keeps leaves zeros behind; the others of its half stay as they
  // are.
  std::vector<float> gradient(128, 0.0f);
  gradient[3] = 8.0f;
  std::fill(gradient.begin() + 64, gradient.end(), 1.0f);
  parameter.grad = {gradient.data(), parameter.shape()};
  optimizer.step(parameter);
  buckets.count_step();
  CHECK(buckets.count().written == 2);
  CHECK(buckets.count().constant == 2);
  CHECK(buckets.count().zero == 1);
  optimizer.advance();
  gradient.assign(128, 0.0f);
  gradient[3] = 8.0f;
  gradient[70] = 0.5f;
  parameter.grad = {gradient.data(), parameter.shape()};
  optimizer.step(parameter);
  buckets.count_step();
  CHECK(buckets.count().written == 4);
  CHECK(buckets.count().constant == 3);
  CHECK(buckets.count().zero == 2);
}

TEST_CASE("reproduce: oscillation of the loss") {
  std::vector<double> steady, zigzag;
  for (int epoch = 0; epoch < 100; ++epoch) {
    steady.push_back(std::pow(0.95, epoch));
    zigzag.push_back(steady.back() * (epoch % 2 == 0 ? 1.1 : 1.0));
  }
  CHECK(mean_oscillation(steady) == doctest::Approx(0.0));
  // ln 1.1 up and down: of the 2 w + 1 epochs around, w or w + 1 are up, so the distance is
  // ln 1.1 * w / (2 w + 1) or ln 1.1 * (w + 1) / (2 w + 1): between a third and two thirds.
  CHECK(mean_oscillation(zigzag) > std::log(1.1) / 3.0);
  CHECK(mean_oscillation(zigzag) < std::log(1.1) * 2.0 / 3.0);
  CHECK(std::isnan(mean_oscillation({1e-9, 1e-9, 1e-9, 1e-9})));  // nothing that could be resolved
  CHECK(median({3.0, 1.0, 2.0}) == 2.0);
  CHECK(median({4.0, 1.0, 2.0, 3.0}) == 2.5);
  CHECK(std::isinf(median({kNan, kNan, 1.0})));
}

}  // namespace tritgrad::test::test_reproduce_numbers
