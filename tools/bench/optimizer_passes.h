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
  FormatKind gradient = FormatKind::kFp32;  // the format that the recipes keep it in
  EcoForm eco = EcoForm::kOff;
  Rounding moments = Rounding::kNearest;
};

std::span<const PassSpec> pass_specs();

// A pass trains as the recipes do, but for rates.
GroupSpec pass_group(const PassSpec& spec);

struct PassResult {
  std::string name;
  double parameters_per_second;
  // A step must read at least the gradient, weights and moments, each once; beside reading it must
  // write at least weights and moments, each once.
  double bytes_read_per_parameter, bytes_per_parameter;
};

// Steps of a matrix of 4096 x 4096 with a kept gradient, measured again in every round.
class PassCase {
 public:
  explicit PassCase(const PassSpec& spec) : spec_(&spec) {}

  std::string name() const { return spec_->name; }
  void measure();
  PassResult result() const;

 private:
  const PassSpec* spec_;
  std::vector<double> seconds_;
  double bytes_read_ = 0.0, bytes_moved_ = 0.0;
};

}  // namespace tritgrad
