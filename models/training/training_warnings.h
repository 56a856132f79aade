// Warnings of a run that does not train: updates that rounding loses or that are left out, learning
// rates of 0, trits of which none ever flips, regressions that are no better than a mean.
#pragma once

#include <optional>
#include <string>

#include "optim/optimizer.h"

namespace tritgrad {

// Judges the weights of one run, epoch by epoch, by what its optimizer watches
// (optim/stalled_updates.h). A resumed run is not judged: what its first part moved is not known
// any more.
class StallWarnings {
 public:
  explicit StallWarnings(bool resumed) : resumed_(resumed) {}

  // Returns a warning, once for a run, if a quarter of its steps are done and the watched updates
  // have moved next to none of the elements of some matrix (kStalledShare), or if the learning rate
  // of a matrix is 0 before any schedule.
  std::string warning(const Optimizer& optimizer, const ParameterStore& store);

  // Returns a warning if the run is over and `flips`, of all its steps, resumed ones included, is 0
  // though trits were to be trained, and if warning() has warned of nothing: updates that chance or
  // ECO carries can all be large enough and still not add up to a trit.
  std::string warning_at_end(const Optimizer& optimizer, const ParameterStore& store,
                             std::int64_t flips) const;

  // Returns the share of the sampled weights with updates that some watched update moved: all of a
  // matrix whose updates are carried by chance or ECO, unless fewer than kStalledShare are; 0 where
  // the learning rate is 0. Nothing for a resumed run.
  std::optional<double> movable_fraction(const Optimizer& optimizer,
                                         const ParameterStore& store) const;

 private:
  bool resumed_;
  bool warned_ = false;
};

// Returns a warning if a tenth of all steps, or the whole last epoch, which then has no loss, was
// left out because something was not finite (non_finite = "skip").
std::string warning_of_skips(std::int64_t skipped, std::int64_t steps, double train_loss);

// Returns a warning if a regression that is over is no better than the mean of the labels: on the
// rows of its last epoch, where the mean has the loss 1, or on its test rows.
std::string warning_of_fit(double train_loss, std::optional<double> test_r2);

}  // namespace tritgrad
