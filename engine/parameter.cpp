#include "engine/parameter.h"

#include <limits>

#include "engine/kernels/codecs.h"
#include "engine/kernels/reductions.h"
#include "engine/memory/parallel.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

float initial_value(const Initial& initial, const RandomKey& key, std::uint64_t index) {
  switch (initial.kind) {
    case Initial::Kind::kUniform:
      return (2.0f * random_uniform(key, index) - 1.0f) * initial.amount;
    case Initial::Kind::kNormal:
      return random_normal(key, index) * initial.amount;
    case Initial::Kind::kConstant:
      break;
  }
  return initial.amount;
}

// The noise that rounds the first values must not be the numbers that they are made of.
constexpr std::uint32_t kRoundingStream = random_stream("rounding of first values");

void fill(Storage& storage, const Initial& initial, const RandomKey& key) {
  const Shape& shape = storage.shape();
  const RandomKey rounding{key.seed, key.stream ^ kRoundingStream, key.step};
  parallel_ranges(shape.rows(), 8, [&](std::int64_t begin, std::int64_t end) {
    std::array<float, kBlock> master;
    for_each_block(begin, end, shape.cols(), [&](const Block& block) {
      const std::int64_t first = block.row * shape.cols() + block.col;
      for (std::int64_t i = 0; i < block.n; ++i) {
        master[static_cast<std::size_t>(i)] =
            initial_value(initial, key, static_cast<std::uint64_t>(first + i));
      }
      storage.encode(block, master.data(), rounding);
    });
  });
  storage.refresh();
}

}  // namespace

Parameter::Parameter(ParameterSpec spec, std::optional<std::uint64_t> seed)
    : spec_(std::move(spec)),
      stream_(random_stream(spec_.name)),
      storage_(spec_.format, spec_.shape, role_category(spec_.role)) {
  if (seed) fill(storage_, spec_.initial, {*seed, stream_, 0});
}

void Parameter::keep_gradient(FormatKind format) {
  if (gradient_is_kept()) return;
  check(format == FormatKind::kFp32 || format == FormatKind::kBf16, "Parameter '", name(),
        "': a gradient is kept in fp32 or bf16, not in ", format_name(format));
  FormatSpec spec;
  spec.kind = format;
  spec.rounding = Rounding::kNearest;
  // One row: read_gradient() takes stretches that know nothing of the matrix's rows.
  kept_gradient_.emplace(spec, Shape{shape().size()}, Category::kGradients);
  kept_bytes_ = kept_gradient_->planes()[0].bytes;
  if (format == FormatKind::kFp32) grad = {kept_gradient_->fp32_data(), shape()};
}

void Parameter::collect_gradient() {
  if (!gradient_is_kept() || kept_gradient_->fp32_data() != nullptr) return;
  const auto add = [&](std::int64_t begin, std::int64_t end) {
    std::array<float, kBlock> sum;
    bool finite = true;
    for (std::int64_t first = begin; first < end; first += kBlock) {
      const Block block{0, first, std::min(kBlock, end - first)};
      kept_gradient_->decode_value(block, sum.data());
      for (std::int64_t i = 0; i < block.n; ++i) {
        sum[static_cast<std::size_t>(i)] += grad.data[first + i];
      }
      kept_gradient_->encode(block, sum.data(), {});
      finite &= kernels().reductions.all_finite_bf16(bf16_gradient() + first, block.n);
    }
    return finite ? 0.0 : 1.0;
  };
  known_finite_ = parallel_sum(shape().size(), kBlock * 32, add) == 0.0;
}

const std::uint16_t* Parameter::bf16_gradient() const {
  const bool bf16 = gradient_is_kept() && kept_gradient_->spec().kind == FormatKind::kBf16;
  return bf16 ? reinterpret_cast<const std::uint16_t*>(kept_bytes_.data()) : nullptr;
}

std::span<std::byte> Parameter::share_gradient() {
  shared_ = true;
  return kept_bytes_;
}

void Parameter::move_average(const float* batch) {
  const std::int64_t n = shape().size();
  if (observed != nullptr) {
    std::copy_n(batch, n, observed);
    return;
  }
  if (!kernels().reductions.all_finite(batch, n)) return;
  float* average = storage_.fp32_data();
  for (std::int64_t i = 0; i < n; ++i) average[i] += kAverageMomentum * (batch[i] - average[i]);
}

void Parameter::zero_gradient() {
  std::fill(kept_bytes_.begin(), kept_bytes_.end(), std::byte{0});
  known_finite_ = false;
  forget_gradient_bound();
}

// Sums of n numbers in float are beyond the bound of exact ones by (1 + 2^-24)^n at most: less than
// 1024 times, up to a hundred million numbers. Those in bf16 may be further.
bool Parameter::gradient_is_known_finite() const {
  constexpr double kMost = std::numeric_limits<float>::max() / 1024;
  const bool bounded =
      gradient_bound_ > 0.0 && gradient_bound_ < kMost && bf16_gradient() == nullptr;
  return (known_finite_ || bounded) && !shared_;
}

const float* Parameter::read_gradient(std::int64_t first, std::int64_t n, float* out) const {
  if (grad) return grad.data + first;
  kernels().codecs.bf16_to_float(out, bf16_gradient() + first, n);
  return out;
}

// Read from the end, so that the update, which reads from the start, finds a part in the cache.
bool Parameter::gradient_is_finite() const {
  if (lazy_gradient != nullptr) return lazy_gradient->finite;
  if (gradient_is_known_finite()) return true;
  constexpr std::int64_t kUnit = 32768;
  const std::int64_t size = shape().size();
  const double bad = parallel_sum(size, kUnit, [&](std::int64_t begin, std::int64_t end) {
    return gradient_is_finite(size - end, end - begin) ? 0.0 : 1.0;
  });
  return bad == 0.0;
}

bool Parameter::gradient_is_finite(std::int64_t first, std::int64_t n) const {
  return grad ? kernels().reductions.all_finite(grad.data + first, n)
              : kernels().reductions.all_finite_bf16(bf16_gradient() + first, n);
}

Parameter& ParameterStore::add(ParameterSpec spec, std::optional<std::uint64_t> seed) {
  for (const Parameter& parameter : parameters_) {
    check(parameter.name() != spec.name, "ParameterStore: a parameter named '", spec.name,
          "' exists already");
  }
  return parameters_.emplace_back(std::move(spec), seed);
}

Parameter& ParameterStore::find(std::string_view name) {
  std::vector<std::string> names;
  for (Parameter& parameter : parameters_) {
    if (parameter.name() == name) return parameter;
    names.push_back(parameter.name());
  }
  fail("ParameterStore: no parameter named '", name, "'", did_you_mean(name, names));
}

std::int64_t ParameterStore::parameter_count() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters_) {
    if (parameter.spec().counted()) count += parameter.shape().size();
  }
  return count;
}

void ParameterStore::keep_gradients(FormatKind format) {
  for (Parameter& parameter : parameters_) {
    if (parameter.spec().trainable()) parameter.keep_gradient(format);
  }
}

void ParameterStore::zero_gradients() {
  for (Parameter& parameter : parameters_) parameter.zero_gradient();
}

}  // namespace tritgrad
