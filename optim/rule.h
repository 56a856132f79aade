// The contract of update rules: a gradient becomes a direction.
//
// The optimizer then moves the parameter by master -= lr * direction, in whatever format it is
// stored. A rule knows no format: it sees chunks of fp32 numbers. Its memory are per-element
// moments, which are stored in formats of their own and come decoded, or planes of its own layout.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/formats/format.h"
#include "engine/kernels/updates.h"
#include "engine/random.h"

namespace tritgrad {

inline constexpr int kMaxMoments = 2;

// Elements of a chunk: enough that what surrounds the arithmetic does not show, few enough that all
// that a rule reads and writes stays in the first-level cache.
inline constexpr std::int64_t kRuleChunk = 4 * kBlock;

// A rule sees some elements of a parameter at a time: neighbours (row-major), or, where a gradient
// comes in tiles, the same columns of some rows, one row after the other. Everything has n
// elements.
struct RuleBlock {
  std::int64_t first;  // index of the first element in the parameter
  std::int64_t n;
  const float* grad;
  const float* weight;          // the reading that weight_reading() asked for, else unspecified
  float* moments[kMaxMoments];  // in and out
  float* direction;             // out
  float* gain;                  // out: d direction / d moments[0], > 0; or null: nobody asks
};

struct MomentSpec {
  const char* name;
  bool nonnegative;  // a mean of squares; decides which formats may hold it
};

// The facts that all chunks of one update share.
struct RuleStep {
  std::int64_t t;        // updates of this parameter, this one included
  RandomKey key;         // for rules that draw numbers
  float largest = 0.0f;  // magnitude of an element of the gradient, for rules that read it
};

class Rule {
 public:
  enum class WeightReading { kNone, kValue, kMaster };

  enum class DirectionForm {
    kWritten,         // direct() writes it
    kScaledGradient,  // factor(v) gradient, if the only moment, v, is one number for all elements
                      // (format scalar)
    kSigns,           // of the gradient; 0 where it is 0 or not finite
  };
  struct GradientForm {
    DirectionForm direction = DirectionForm::kWritten;
    // These belong to kScaledGradient: v is a moving average of squares with this decay, and counts
    // as inverse_bias v.
    double decay = 0.0;
    float inverse_bias = 0.0f;

    float factor(float v) const {
      const float root = std::sqrt(v * inverse_bias);
      return root > 0.0f ? 1.0f / root : 0.0f;
    }
    // Returns the sum of the next v of n elements, given the sum of their squared gradients.
    double next_moments(float v, double squares, std::int64_t n) const {
      return decay * double{v} * static_cast<double>(n) + (1.0 - decay) * squares;
    }
  };

  // ECO carries an error in moments[0], if that is a moving average to which one can be added and
  // direction = gain * moments[0] + (no function of it).
  struct EcoTerms {
    double momentum = 0.0;     // decay of moments[0], 0 < momentum < 1; 0: errors cannot be carried
    bool gain_is_one = false;  // always; it is then not to be asked for
    double gain_ratio = 1.0;   // gain at update t + 1 over that at update t, as far as t decides
  };

  virtual ~Rule() = default;

  // Returns the moments of each element, at most kMaxMoments.
  virtual std::vector<MomentSpec> moments() const { return {}; }
  virtual WeightReading weight_reading() const { return WeightReading::kNone; }
  // Returns whether begin() is to know the gradient's largest magnitude.
  virtual bool reads_largest() const { return false; }
  // Returns how the update under way makes a direction of the gradient alone. If it does, and
  // moments and the weight's format allow it, no direction is written and direct() is not called.
  virtual GradientForm gradient_form() const { return {}; }
  // Returns the planes of state that is no per-element moment. The optimizer holds the memory, zero
  // at the start, hands it over once by attach(), and saves it in checkpoints.
  virtual std::vector<PlaneSpec> planes(const Shape& /*shape*/) const { return {}; }
  virtual void attach(const Shape& /*shape*/, const std::vector<Plane>& /*planes*/) {}
  // Returns how many elements a chunk has at most, kRuleChunk or more. optim/chunks.h cuts them.
  virtual std::int64_t chunk_limit() const { return kRuleChunk; }
  // Returns the numbers of update `t` that ECO needs.
  virtual EcoTerms eco_terms(std::int64_t /*t*/) const { return {}; }

  // Called before the chunks of one update.
  virtual void begin(const RuleStep& /*step*/) {}
  // Makes the direction of a chunk. Thread-safe; chunks do not overlap.
  virtual void direct(const RuleBlock& block) const = 0;
};

// An interface beside Rule, of rules with a second moment that can be frozen (adam, adamw).
class FreezesVariance {
 public:
  virtual ~FreezesVariance() = default;
  // Freezes the second moment: it stays as update `t` left it, and the gradient that comes is the
  // new first moment itself (optim/parallel/data_parallel.h).
  virtual void freeze_variance(std::int64_t t) = 0;
};

// An interface beside Rule, of rules that have a pass of their own over weights in split24 and
// moments in companded8 and root8 (sgd, sgdw, adam, adamw, lion; optim/fused_split24.h).
class FusesSplit24 {
 public:
  virtual ~FusesSplit24() = default;
  // Updates n neighbours in one pass (UpdateKernels::flash_adamw and others), with the bits of
  // direct() between decoding and encoding. Returns false, with nothing changed, if there is none
  // for the rule's settings or for these numbers.
  virtual bool update_split24(const FlashElements& at, float lr, std::int64_t n) const = 0;
};

// An interface beside Rule, of rules that have a pass of their own over bare trits whose rounding
// errors are carried (sgd, sgdw, adam, adamw, normalized; optim/fused_carry.h).
class CarriesTrits {
 public:
  virtual ~CarriesTrits() = default;
  // Returns the format that the second moment of the pass has, if the rule has one; nothing if
  // there is no pass for the rule's settings.
  virtual std::optional<FormatKind> carried_v() const = 0;
  // Updates a block of n trits in one pass (UpdateKernels::carry_sgd and others), with the bits of
  // direct() between decoding, the descent with feedback and encoding. v: of a second moment that
  // is one number. Returns how many trits have changed.
  virtual std::int64_t carry_trits(const CarriedTrits& at, float v, const CarryConstants& carry,
                                   std::int64_t n) const = 0;
};

// Returns the key of the noise that rounds moment `index`. Every plane has noise of its own: shared
// noise would correlate its rounding errors.
inline RandomKey moment_key(RandomKey key, std::size_t index) {
  key.stream += static_cast<std::uint32_t>(index + 1) * 0x9E3779B9u;
  return key;
}

enum class RuleKind { kSgd, kSgdw, kAdam, kAdamw, kLion, kSign, kNormalized, kMicroadam, kShifted };
inline constexpr int kRuleCount = 9;

// The way in which the sums over MicroAdam's window become moving averages.
enum class WindowForm {
  kCorrected,  // divided by the mass of the window, 1 - beta^min(t, window)
  kPublished,  // divided by 1 - beta^t, as in the paper and its code
  kStudy,      // a reproduction study's code: ages scrambled, bias corrected twice
};

// Hyper-parameters of all rules; each rule reads its own.
struct RuleSpec {
  RuleKind kind = RuleKind::kAdamw;
  // sgd, adam: coupled (added to the gradient); sgdw, adamw, lion, microadam: decoupled; sign:
  // votes towards zero, in [0, 1).
  double weight_decay = 0.0;
  double momentum = 0.0;   // sgd, sgdw, normalized
  double dampening = 0.0;  // sgd, sgdw: m = momentum m + (1 - dampening) g
  bool nesterov = false;   // sgd, sgdw
  double beta1 = 0.9;      // adam, adamw, lion, microadam
  double beta2 = 0.999;    // adam, adamw, lion, microadam, normalized
  double eps = 1e-8;       // adam, adamw, microadam
  double density = 0.01;   // microadam: share of the gradient that enters the window, in (0, 1]
  int window = 10;         // microadam: gradients remembered, 1..255
  int feedback_bits = 4;   // microadam: bits of error feedback: 0 (none) or 2 to 8
  int bucket = 64;         // microadam: elements that share the bounds of their error codes
  Rounding feedback_rounding = Rounding::kStochastic;  // microadam
  WindowForm window_form = WindowForm::kCorrected;     // microadam
  bool counted_votes = false;  // sign: the gradient is a mean of signs already (data parallel)
  // normalized: elements of the normalised gradient are limited to +-clip_direction; 0 = off
  double clip_direction = 0.0;

  friend bool operator==(const RuleSpec&, const RuleSpec&) = default;
};

std::string_view rule_name(RuleKind kind);  // "sgd", "sgdw", "adam", ...
// Throws Error for an unknown name, with the nearest known one.
RuleKind parse_rule(std::string_view name);
// Throws Error for a window, feedback_bits or bucket outside its range, also for what no int holds.
void check_whole_setting(std::string_view key, std::int64_t value);
// Throws Error for hyper-parameters outside their ranges.
std::unique_ptr<Rule> make_rule(const RuleSpec& spec);

}  // namespace tritgrad
