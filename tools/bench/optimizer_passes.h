// Every rule on its natural formats, moving a matrix that does not fit any cache.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "optim/optimizer.h"

namespace tritgrad {

struct PassSpec {
  const char* name;
  RuleKind rule;
  FormatKind weight;
  FormatKind m = FormatKind::kFp32;
  FormatKind v = FormatKind::kFp32;
  EcoForm eco = EcoForm::kOff;
  Rounding moments = Rounding::kNearest;
  FormatKind gradient = FormatKind::kFp32;  // as the recipes keep it
};

std::span<const PassSpec> pass_specs();

// How a pass trains: as the recipes do, but for rates.
GroupSpec pass_group(const PassSpec& spec);

// A matrix of 4096 x 4096 with a kept gradient, its state, and the optimizer; one step was made.
class OptimizerPass {
 public:
  explicit OptimizerPass(const PassSpec& spec);

  void run() { optimizer_.step(); }

  static constexpr std::int64_t kSide = 4096;
  static constexpr double parameters() { return static_cast<double>(kSide * kSide); }
  // What a step must read at least: the gradient, weights and moments, each once.
  double bytes_read_per_parameter() const { return bytes_read_; }
  // The same with weights and moments written once.
  double bytes_per_parameter() const { return bytes_moved_; }

 private:
  GroupSpec group_;
  ParameterStore store_;
  Optimizer optimizer_;
  double bytes_read_, bytes_moved_;
};

// One pass, measured again in every round.
class PassCase {
 public:
  explicit PassCase(const PassSpec& spec) : spec_(&spec) {}

  std::string name() const { return spec_->name; }
  void measure();
  double parameters_per_second() const;
  double bytes_read_per_parameter() const { return bytes_read_; }
  double bytes_per_parameter() const { return bytes_moved_; }

 private:
  const PassSpec* spec_;
  std::vector<double> seconds_;
  double bytes_read_ = 0.0, bytes_moved_ = 0.0;
};

}  // namespace tritgrad
