// One optimizer step of many ranks: each works on some parts of the batch, and all make the same
// update of the same weights, bit for bit.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "optim/optimizer.h"
#include "optim/parallel/gradient_exchange.h"
#include "optim/parallel/joint_statistics.h"

namespace tritgrad {

enum class ParallelMethod {
  kNone,
  kAllreduce,   // gradients, summed in the order of the ranks
  kApmsqueeze,  // Adam's momentum as signs after a warm-up
  kVotes,       // sign votes as integers; gradients of other weights as int8 with error feedback
};

struct ParallelSpec {
  ParallelMethod method = ParallelMethod::kNone;
  bool majority = false;  // votes: the sign of the sum of votes rather than their mean
  // apmsqueeze: the part of the steps, 0 to 1, that is warm-up; without it, the warm-up lasts until
  // the second moment is stable.
  std::optional<double> warmup = 0.2;
  WireCode squeeze = WireCode::kMeanSigns;  // apmsqueeze; or kRmsSigns
};

// The names are "none", "allreduce", "apmsqueeze" and "votes"; for others Error is thrown.
std::string_view method_name(ParallelMethod method);
ParallelMethod parse_method(std::string_view name);

// Returns a group of the recipe as ranks train it together: votes arrive counted, so the rule
// `sign` has no sign left to take, and moves by their mean.
GroupSpec joint_group(const ParallelSpec& spec, GroupSpec group);

// Returns how the gradient of a parameter travels. Throws Error for what the method cannot do.
ExchangeKind exchange_of(const ParallelSpec& spec, const ParameterSpec& parameter,
                         const GroupSpec& group);

// Returns whether running statistics move by every part in its order, the same bits for any number
// of ranks, or by sums of the ranks; see JointStatistics.
bool statistics_are_exact(const ParallelSpec& spec, int ranks);

// The sums over all parts of a batch.
struct BatchSums {
  double loss = 0.0;   // mean over the batch
  double score = 0.0;  // sum of what the rows add to a score
  bool finite = true;
};
// The sums as they travel: a loss that is NaN says that something is not finite.
struct SentSums {
  double loss, score;
};

class DataParallel {
 public:
  // `gradients`: the format in which kept gradients are summed, fp32 or bf16. All three must
  // outlive this.
  DataParallel(Communicator& ranks, const ParallelSpec& spec, ParameterStore& store,
               Optimizer& optimizer, FormatKind gradients);

  Communicator& ranks() const { return *ranks_; }

  // Begins a batch, of whose parts this rank works on some.
  void begin(const Parts& parts);
  // Is called before part `part` runs, whose batch statistics are noted and not yet averaged.
  void begin_part(int part);
  // Takes the gradient of a parameter, which is complete in a part.
  void collect(Parameter& parameter, int part);
  // Adds up the sums of the batch over all ranks and, if everything is finite, the gradients, which
  // the parameters then hold for Optimizer::step(), and the running statistics.
  BatchSums exchange(const BatchSums& own);
  // Is called after the optimizer's step.
  void end_step();

  // The bytes that this rank has sent in the steps of this process: gradients, statistics, sums.
  // `last` are those of the last step, which had `parts` parts.
  struct Sent {
    std::int64_t total = 0, steps = 0, last = 0;
    int parts = 1;
    // Counts the steps by their number of parts, apmsqueeze's warm-up apart.
    struct Kind {
      int parts;
      bool warmup;
      // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 finds a null pointer in <=>
      auto operator<=>(const Kind&) const = default;
    };
    std::map<Kind, std::int64_t> counts;
  };
  const Sent& sent() const { return sent_; }
  // Returns the last step of the warm-up; 0 while it lasts, and for other methods.
  std::int64_t frozen_at() const { return frozen_at_; }
  // Returns the steps of the warm-up so far; 0 for other methods.
  std::int64_t warmup_steps() const;
  // Returns whether all steps are done and apmsqueeze's warm-up has not ended, so that nothing was
  // ever compressed.
  bool never_compressed() const;

  // ---- checkpoints -----------------------------------------------------------------------------
  // The state is the errors that compression on all ranks has still to send. gather_state() is
  // called on all of them, and fills state() on rank 0. After state() was filled from a checkpoint
  // of `ranks` ranks, restore() makes it this rank's: where the number of ranks differs, chunks are
  // divided anew, and every rank takes the mean of the errors of all. forget_state() frees the
  // gathered copy.
  void allocate_state(int ranks);
  void gather_state();
  void forget_state();
  std::vector<NamedArray> state();
  void restore(int ranks);

 private:
  struct SavedErrors {
    CompressedMean* mean;
    std::string name;
    Buffer worker;  // [ranks x n]
    Buffer server;  // [n]
  };
  struct Warmup {
    double steps, updates, variance_before;
  };

  std::unique_ptr<GradientExchange> make(Parameter& parameter, FormatKind gradients);
  BatchSums add_up(const BatchSums& own);
  // Counts the updates of all parameters, this step's included; a step that is left out has none.
  std::int64_t updates_done() const;
  void freeze(std::int64_t steps, std::int64_t updates);
  bool variance_is_stable();

  Communicator* ranks_;
  Reducer reducer_;
  ParallelSpec spec_;
  Optimizer* optimizer_;
  std::vector<std::unique_ptr<GradientExchange>> exchanges_;
  std::vector<MomentumExchange*> momenta_;  // of the exchanges, those of apmsqueeze
  JointStatistics statistics_;
  std::vector<Reduction*> reductions_;  // of the step
  std::vector<SentSums> sums_;          // by rank
  std::vector<std::span<std::byte>> sum_places_;
  int parts_ = 1;
  Sent sent_;
  std::int64_t frozen_at_ = 0;       // steps; 0: not yet
  std::int64_t frozen_updates_ = 0;  // what Rule::freeze_variance() was told
  double variance_before_ = 0.0;     // see variance_is_stable(); 0: never looked at
  std::deque<SavedErrors> saved_;
  Buffer saved_warmup_;
};

}  // namespace tritgrad
