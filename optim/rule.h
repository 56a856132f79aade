// The contract of update rules: a gradient becomes a direction.
//
// The optimizer then moves the parameter by master -= lr * direction, in whatever format it is
// stored. A rule knows no format: it sees blocks of fp32 numbers. Its memory are per-element
// moments, which are stored in formats of their own and come decoded, and a few scalars for the
// whole tensor.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tritgrad {

inline constexpr int kMaxMoments = 2;

// One block of a parameter. Everything has n elements.
struct RuleBlock {
  std::int64_t n;
  const float* grad;
  const float* weight;          // the reading that weight_reading() asked for, else null
  float* moments[kMaxMoments];  // in and out
  float* direction;             // out
};

class Rule {
 public:
  enum class WeightReading { kNone, kValue, kMaster };

  virtual ~Rule() = default;

  // Names of the per-element moments, at most kMaxMoments.
  virtual std::vector<std::string> moment_names() const { return {}; }
  virtual WeightReading weight_reading() const { return WeightReading::kNone; }
  // Numbers of whole-tensor state, zero at the start. The optimizer owns them, hands them to
  // begin() and end(), and saves them in checkpoints.
  virtual int scalar_count() const { return 0; }

  // Called before the blocks of one update; step counts from 1.
  virtual void begin(std::int64_t /*step*/, std::span<const float> /*scalars*/) {}
  // Thread-safe. Returns this block's share of a whole-tensor sum, for end().
  virtual double direct(const RuleBlock& block) const = 0;
  // Called after all blocks with the sum of what direct() returned and the number of elements.
  virtual void end(double /*sum*/, std::int64_t /*elements*/, std::span<float> /*scalars*/) {}
};

enum class RuleKind { kSgd, kAdamw, kSign, kNormalized };

// Hyper-parameters of all rules; each rule reads its own.
struct RuleSpec {
  RuleKind kind = RuleKind::kAdamw;
  double weight_decay = 0.0;       // sgd, adamw: decoupled; sign: votes towards zero, in [0, 1)
  double momentum = 0.0;           // sgd
  bool nesterov = false;           // sgd
  double beta1 = 0.9;              // adamw
  double beta2 = 0.999;            // adamw
  double eps = 1e-8;               // adamw
  double normalizer_beta = 0.999;  // normalized
};

std::string_view rule_name(RuleKind kind);  // "sgd", "adamw", "sign", "normalized"
// Throws Error for an unknown name, with the nearest known one.
RuleKind parse_rule(std::string_view name);
// Throws Error for hyper-parameters outside their ranges.
std::unique_ptr<Rule> make_rule(const RuleSpec& spec);

}  // namespace tritgrad
