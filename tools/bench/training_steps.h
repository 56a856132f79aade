// Whole training steps of a network on made-up data, by phase.
#pragma once

#include <string>
#include <vector>

#include "models/networks/model.h"
#include "models/training/training_step.h"
#include "tools/bench/ceilings.h"

namespace tritgrad {

struct StepSpec {
  std::string recipe, model;
  std::int64_t batch;

  // "latent8 mlp:784-1024-1024-10 batch 256"
  std::string name() const;
};

// Seconds of one step. The whole includes what is in no phase: sums and the tape's reset.
struct MeasuredStep {
  double whole = 0.0;
  StepTimes phases;
};

struct StepResult {
  StepSpec spec;
  Compute compute;     // the arithmetic of products with bare trits
  MeasuredStep times;  // those of the step whose whole is the median
  double operations;   // a step does so many: two for each product of a matrix product
  Ceiling ceiling;
  std::int64_t peak_live_bytes;  // the most that the engine held at a time, without the batch

  double gop_per_second() const { return 1e-9 * operations / times.whole; }
};

// One kind of step, measured again in every round. A round makes a network, warms it up and steps
// it.
class StepCase {
 public:
  // Throws Error when the network cannot be made; allocates nothing.
  explicit StepCase(const StepSpec& spec);

  std::string name() const { return spec_.name(); }
  Ceiling ceiling() const { return ceiling_; }
  void measure();
  StepResult result() const;

 private:
  StepSpec spec_;
  Recipe recipe_;
  std::int64_t inputs_, outputs_;
  double operations_ = 0.0;
  Ceiling ceiling_ = Ceiling::kFp32;
  std::int64_t peak_live_bytes_ = 0;
  std::vector<MeasuredStep> steps_;
};

}  // namespace tritgrad
