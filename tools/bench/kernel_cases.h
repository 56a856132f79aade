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
  double amount;  // of units * 1e9 that one call does
  std::optional<Ceiling> ceiling;
  // Makes the data, and returns what is timed. A kernel runs on every thread, on data of its own; a
  // layer divides its work by itself.
  std::function<std::function<void()>()> make;
  bool divides_work = false;
};

std::vector<KernelSpec> kernel_specs();

// One kernel, measured again in every round.
class KernelCase {
 public:
  explicit KernelCase(KernelSpec spec);

  const std::string& name() const { return spec_.name; }
  const KernelSpec& spec() const { return spec_; }
  void measure();
  double value() const;

 private:
  KernelSpec spec_;
  std::vector<double> seconds_;
};

}  // namespace tritgrad
