// The events of a training run, for those who watch it, and the question whether it is to end. The
// library itself prints nothing and catches no signals.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/check.h"
#include "models/training/run_result.h"

namespace tritgrad {

// A run was ended because somebody asked for it, not because of a mistake.
class Interrupted : public Error {
 public:
  using Error::Error;
};

// A run that is about to take its first step, or to go on from a checkpoint.
struct RunStart {
  std::uint64_t seed;
  int epochs;
  std::int64_t total_steps;
  std::int64_t steps_done;               // before this process
  const std::vector<EpochPoint>& curve;  // of the epochs before this process
  Metric metric = Metric::kAccuracy;     // of its scores
};

struct StepReport {
  int epoch;              // counted from 1
  std::int64_t step;      // over the whole run
  double loss;            // mean of the epoch so far
  std::int64_t examples;  // seen since this process began
};

// Every function but interrupted() is called by the thread that trains, in the order of the run.
class Observer {
 public:
  virtual ~Observer() = default;

  virtual void begin(const RunStart&) {}
  virtual void step(const StepReport&) {}
  virtual void epoch(const EpochPoint&) {}
  // Is called when the last step is done, before the test rows are looked at. A run that was told
  // to stop early has done fewer steps than `total`.
  virtual void trained(std::int64_t /*steps_done*/, std::int64_t /*total*/) {}

  // Tells what is amiss with a run of this recipe. The result holds all warnings, too.
  virtual void warn(const std::string& /*recipe*/, const std::string& /*warning*/) {}
  // Tells what is worth knowing and needs no action.
  virtual void note(const std::string& /*sentence*/) {}

  // Returns whether the run is to end. It is asked before the first step and after each one; the
  // run then saves, where it has a file for that, and throws Interrupted.
  virtual bool interrupted() { return false; }
};

}  // namespace tritgrad
