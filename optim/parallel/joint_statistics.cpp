#include "optim/parallel/joint_statistics.h"

#include <algorithm>

#include "engine/kernels/reductions.h"

namespace tritgrad {
namespace {

std::int64_t statistics_of(const ParameterStore& store) {
  std::int64_t n = 0;
  for (const Parameter& parameter : store) {
    if (!parameter.spec().trainable()) n += parameter.shape().size();
  }
  return n;
}

// Returns the factor that is left of an average after so many moves.
float kept_after(int moves) {
  float kept = 1.0f;
  for (int i = 0; i < moves; ++i) kept *= 1.0f - kAverageMomentum;
  return kept;
}

}  // namespace

JointStatistics::JointStatistics(const Communicator& ranks, ParameterStore& store, bool exact)
    : n_(statistics_of(store)),
      exact_(exact),
      gathered_(ranks, n_),
      sum_(ranks, WireCode::kFp32, n_),
      own_(static_cast<std::size_t>(n_) * sizeof(float), Category::kWorkspace),
      summed_(static_cast<std::size_t>(n_) * sizeof(float), Category::kWorkspace) {
  std::int64_t offset = 0;
  for (Parameter& parameter : store) {
    if (parameter.spec().trainable()) continue;
    statistics_.push_back({&parameter, offset});
    offset += parameter.shape().size();
  }
}

void JointStatistics::begin(const Parts& parts) {
  parts_ = parts;
  noted_ = -1;
  if (exact_) {
    gathered_.begin(parts.all);
  } else {
    std::fill_n(summed_.as<float>(), n_, 0.0f);
  }
}

void JointStatistics::begin_part(int part) {
  end_parts();
  noted_ = part;
  float* place = exact_ ? gathered_.part(part) : own_.as<float>();
  for (const Statistic& statistic : statistics_) {
    statistic.parameter->observed = place + statistic.offset;
  }
}

void JointStatistics::end_parts() {
  for (const Statistic& statistic : statistics_) statistic.parameter->observed = nullptr;
  if (!exact_ && noted_ >= 0) {
    for (const Statistic& statistic : statistics_) stand_in_for_non_finite(statistic);
    const float weight = kAverageMomentum * kept_after(parts_.all - 1 - noted_);
    kernels().reductions.add_scaled(summed_.as<float>(), own_.as<float>(), weight, n_);
  }
  noted_ = -1;
}

void JointStatistics::stand_in_for_non_finite(const Statistic& statistic) {
  const Parameter& parameter = *statistic.parameter;
  float* shown = own_.as<float>() + statistic.offset;
  const std::int64_t n = parameter.shape().size();
  if (kernels().reductions.all_finite(shown, n)) return;
  std::copy_n(parameter.storage().fp32_data(), n, shown);
}

Reduction& JointStatistics::reduction() {
  if (exact_) return gathered_;
  sum_.attach(summed_.as<float>());
  return sum_;
}

void JointStatistics::deliver() {
  if (exact_) {
    for (int part = 0; part < gathered_.count(); ++part) {
      for (const Statistic& statistic : statistics_) {
        statistic.parameter->move_average(gathered_.part(part) + statistic.offset);
      }
    }
    return;
  }
  const float kept = kept_after(parts_.all);
  for (const Statistic& statistic : statistics_) {
    float* average = statistic.parameter->storage().fp32_data();
    const float* moves = summed_.as<float>() + statistic.offset;
    const std::int64_t n = statistic.parameter->shape().size();
    for (std::int64_t i = 0; i < n; ++i) average[i] = kept * average[i] + moves[i];
  }
}

}  // namespace tritgrad
