#include "optim/rules/microadam.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/formats/half_precision.h"
#include "engine/kernels/codecs.h"
#include "engine/kernels/reductions.h"
#include "engine/kernels/updates.h"
#include "optim/rules/adam.h"

namespace tritgrad {
namespace {

// Keeps the noise of the error codes apart from that of the weight.
constexpr std::uint32_t kFeedbackStream = random_stream("microadam feedback");

}  // namespace

std::int64_t Microadam::kept_of(std::int64_t n) const {
  // 0.07 * 100 is a little more than 7, and means 7.
  const double wanted = spec_.density * static_cast<double>(n) * (1.0 - 1e-12);
  const auto k = static_cast<std::int64_t>(std::ceil(wanted));
  return std::clamp<std::int64_t>(k, 1, n);
}

std::vector<Microadam::Extent> Microadam::lay_out(const Chunks& chunks) const {
  const bool feeds_back = spec_.feedback_bits > 0;
  std::vector<Extent> begins(1);
  for (std::int64_t i = 0; i < chunks.count(); ++i) {
    const std::int64_t n = chunks.size(i);
    Extent end = begins.back();
    end.kept += kept_of(n);
    end.codes += feeds_back ? (n * spec_.feedback_bits + 7) / 8 : 0;
    end.buckets += feeds_back ? (n + spec_.bucket - 1) / spec_.bucket : 0;
    begins.push_back(end);
  }
  return begins;
}

std::vector<PlaneSpec> Microadam::planes(const Shape& shape) const {
  const Extent sizes = lay_out(Chunks(shape, kElements)).back();
  std::vector<PlaneSpec> specs = {
      {"index", Dtype::kU16, spec_.window * sizes.kept, Category::kMoments, false},
      {"value", Dtype::kBf16, spec_.window * sizes.kept, Category::kMoments, false}};
  if (spec_.feedback_bits > 0) {
    specs.push_back({"error", Dtype::kU8, sizes.codes, Category::kMoments, false});
    specs.push_back({"bounds", Dtype::kBf16, 2 * sizes.buckets, Category::kMoments, false});
  }
  return specs;
}

void Microadam::attach(const Shape& shape, const std::vector<Plane>& planes) {
  const auto memory = [&](std::size_t i) { return planes[i].bytes.data(); };
  index_ = reinterpret_cast<std::uint16_t*>(memory(0));
  value_ = reinterpret_cast<std::uint16_t*>(memory(1));
  if (spec_.feedback_bits > 0) {
    codes_ = reinterpret_cast<std::uint8_t*>(memory(2));
    bounds_ = reinterpret_cast<std::uint16_t*>(memory(3));
  }
  chunks_ = Chunks(shape, kElements);
  begins_ = lay_out(chunks_);
  kept_total_ = begins_.back().kept;
  weight1_.reserve(static_cast<std::size_t>(spec_.window));
  weight2_.reserve(static_cast<std::size_t>(spec_.window));
}

void Microadam::begin(const RuleStep& step) {
  t_ = step.t;
  key_ = step.key;
  key_.stream ^= kFeedbackStream;
  const std::int64_t rows = std::min<std::int64_t>(t_, spec_.window);
  const std::int64_t mass = spec_.window_form == WindowForm::kCorrected ? rows : t_;
  const double scale1 = (1.0 - spec_.beta1) / bias_correction(spec_.beta1, mass);
  const double scale2 = (1.0 - spec_.beta2) / bias_correction(spec_.beta2, mass);
  weight1_.assign(static_cast<std::size_t>(rows), 0.0f);
  weight2_.assign(static_cast<std::size_t>(rows), 0.0f);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t age = (t_ - 1 - row) % spec_.window;
    const bool study = spec_.window_form == WindowForm::kStudy;
    const double exponent = static_cast<double>(study ? (t_ - age) % spec_.window : age);
    const auto r = static_cast<std::size_t>(row);
    weight1_[r] = static_cast<float>(scale1 * std::pow(spec_.beta1, exponent));
    weight2_[r] = static_cast<float>(scale2 * std::pow(spec_.beta2, exponent));
  }
  rate_ = 1.0f;
  if (spec_.window_form == WindowForm::kStudy) {
    rate_ = static_cast<float>(std::sqrt(bias_correction(spec_.beta2, t_)) /
                               bias_correction(spec_.beta1, t_));
  }
}

Feedback Microadam::feedback(const Extent& begin) const {
  return {.codes = codes_ + begin.codes,
          .bounds = bounds_ + 2 * begin.buckets,
          .bits = spec_.feedback_bits,
          .bucket = spec_.bucket,
          .guard = spec_.window_form == WindowForm::kStudy ? 1e-8f : 0.0f};
}

void Microadam::store_feedback(const Extent& begin, const float* a, std::int64_t n,
                               std::int64_t chunk_index) const {
  std::array<std::uint16_t, kElements> noise;
  const bool stochastic = spec_.feedback_rounding == Rounding::kStochastic;
  if (stochastic) {
    kernels().codecs.random_u16(noise.data(), n, key_,
                                static_cast<std::uint64_t>(chunk_index * kElements));
  }
  kernels().updates.store_feedback(feedback(begin), a, stochastic ? noise.data() : nullptr, n);
}

// Moves the largest elements of a into the newest row of the ring. The error of their rounding to
// bf16 stays in a, and so in the feedback.
void Microadam::remember(const Extent& begin, float* a, std::int64_t n) const {
  const std::int64_t kept = kept_of(n);
  const std::int64_t row = (t_ - 1) % spec_.window * kept_total_ + begin.kept;
  std::uint16_t* index = index_ + row;
  kernels().updates.select_largest(index, a, kept, n);
  for (std::int64_t first = 0; first < kept; first += kBlock) {
    const std::int64_t size = std::min(kBlock, kept - first);
    const std::uint16_t* from = index + first;
    std::uint16_t* to = value_ + row + first;
    std::array<float, kBlock> chosen;
    for (std::int64_t j = 0; j < size; ++j) chosen[static_cast<std::size_t>(j)] = a[from[j]];
    kernels().codecs.float_to_bf16(to, chosen.data(), nullptr, size);
    for (std::int64_t j = 0; j < size; ++j) a[from[j]] -= float_of_bf16(to[j]);
  }
}

void Microadam::moments_of_window(const Extent& begin, std::int64_t n, float* z1, float* z2) const {
  const std::int64_t kept = kept_of(n);
  for (std::size_t row = 0; row < weight1_.size(); ++row) {
    const std::int64_t at = static_cast<std::int64_t>(row) * kept_total_ + begin.kept;
    for (std::int64_t j = 0; j < kept; ++j) {
      const float v = float_of_bf16(value_[at + j]);
      const std::uint16_t i = index_[at + j];
      if (i >= n) continue;  // no update stores such an index, but a file might
      z1[i] += weight1_[row] * v;
      z2[i] += (weight2_[row] * v) * v;
    }
  }
}

void Microadam::direct(const RuleBlock& b) const {
  const std::int64_t chunk = chunks_.index_of(b.first);
  const Extent& begin = begins_[static_cast<std::size_t>(chunk)];
  std::array<float, kElements> a;
  if (spec_.feedback_bits > 0) {
    kernels().updates.add_feedback(a.data(), b.grad, feedback(begin), b.n);
  } else {
    std::copy_n(b.grad, b.n, a.data());
  }
  // Gradients are finite, but sums may not be, nor what a damaged file says of the feedback.
  constexpr float kLimit = 0x1p126f;
  kernels().updates.limit(a.data(), kLimit, b.n);
  remember(begin, a.data(), b.n);
  if (spec_.feedback_bits > 0) store_feedback(begin, a.data(), b.n, chunk);

  std::array<float, kElements>& z2 = a;  // a has gone into the ring and the feedback
  std::fill_n(b.direction, b.n, 0.0f);
  std::fill_n(z2.data(), b.n, 0.0f);
  moments_of_window(begin, b.n, b.direction, z2.data());
  kernels().updates.divide_by_roots(b.direction, z2.data(), rate_, static_cast<float>(spec_.eps),
                                    b.n);
  if (spec_.weight_decay > 0.0) {
    kernels().reductions.add_scaled(b.direction, b.weight, static_cast<float>(spec_.weight_decay),
                                    b.n);
  }
}

}  // namespace tritgrad
