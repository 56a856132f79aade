// Running statistics of batch norm, moved by the statistics of all parts of a batch.
//
// With a = kAverageMomentum and P parts whose statistics are x_0 .. x_(P-1), an average becomes
//
//   average = (1 - a)^P average + sum_p a (1 - a)^(P-1-p) x_p
//
// which is the result of P moves one after the other. A part whose statistics are not finite moves
// nothing, as in Parameter::move_average(): the average of before the step stands in for it.
#pragma once

#include <vector>

#include "engine/parameter.h"
#include "optim/parallel/rank_sums.h"

namespace tritgrad {

class JointStatistics {
 public:
  // exact: every part travels, and the averages move part by part, so that no number of ranks
  // changes a bit. Otherwise each rank adds up its own parts, and what it sends does not grow with
  // the number of ranks. `store` must outlive this.
  JointStatistics(const Communicator& ranks, ParameterStore& store, bool exact);

  void begin(const Parts& parts);
  // Is called before a part of this rank runs, whose statistics are noted and move nothing yet.
  void begin_part(int part);
  // Is called after the last part.
  void end_parts();
  Reduction& reduction();
  // Moves the averages, after the reduction: the same bits on all ranks.
  void deliver();

 private:
  struct Statistic {
    Parameter* parameter;
    std::int64_t offset;  // among the numbers of a part
  };

  void stand_in_for_non_finite(const Statistic& statistic);

  std::vector<Statistic> statistics_;
  std::int64_t n_ = 0;  // numbers of a part
  bool exact_;
  Parts parts_;
  GatheredParts gathered_;
  FloatSum sum_;
  Buffer own_;     // [n]: the statistics of the part that runs
  Buffer summed_;  // [n]: the weighted sum of those before it, then of all ranks
  int noted_ = -1;
};

}  // namespace tritgrad
