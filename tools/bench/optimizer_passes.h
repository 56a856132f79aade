// Passes of the optimizer: every rule on its natural formats moves a matrix that fits no cache.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "optim/optimizer.h"
#include "tools/bench/ceilings.h"

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

struct PassSpeed {
  std::string name;
  double parameters_per_second;
  // A step must read at least the gradient, weights and moments, each once; beside reading it must
  // write at least weights and moments, each once.
  double bytes_read_per_parameter, bytes_moved_per_parameter;
};

// The ceiling that bounds a pass, and how near the pass comes to it.
struct PassLimit {
  Ceiling ceiling;
  double bytes_per_parameter;
  double share;
};

// A loop that reading bounds pays little for what it also writes, so memory has two ceilings: one
// of reading, for what a pass reads, and one of a loop which also writes a third of what it
// moves, for all that the pass moves. The nearer one counts.
PassLimit limit_of(const PassSpeed& pass, const CeilingValues& ceilings);

BenchEntry entry_of(const PassSpeed& pass, const CeilingValues& ceilings);

// Measures steps of a matrix of 4096 x 4096 with a kept gradient.
std::unique_ptr<Measurement> measurement_of(const PassSpec& pass);

}  // namespace tritgrad
