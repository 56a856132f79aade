// Single kernels and the forward product of one layer, on data in caches.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/ceilings.h"

namespace tritgrad {

struct KernelSpec {
  std::string name;
  std::string unit;
  double amount;  // units * 1e9 that one call does
  std::optional<Ceiling> ceiling;
  // Makes the data and returns the call that is timed.
  std::function<std::function<void()>()> make;
  // A layer divides its work among the threads by itself. A kernel runs on every thread, on data
  // of its own.
  bool divides_work = false;
};

std::vector<KernelSpec> kernel_specs();

struct KernelResult {
  std::string name, unit;
  double value;
  std::optional<Ceiling> ceiling;
};

// One kernel, measured again in every round.
class KernelCase {
 public:
  explicit KernelCase(KernelSpec spec) : spec_(std::move(spec)) {}

  const std::string& name() const { return spec_.name; }
  void measure();
  KernelResult result() const;

 private:
  KernelSpec spec_;
  std::vector<double> seconds_;
};

}  // namespace tritgrad
