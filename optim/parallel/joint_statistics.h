// Running statistics of batch norm, moved by what all parts of a batch show.
//
// With a = kAverageMomentum and P parts that show x_0 .. x_(P-1),
//
//   average = (1 - a)^P average + sum_p a (1 - a)^(P-1-p) x_p
//
// which is what P moves one after the other come to. A part that shows what is not finite moves
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
  // To be called before a part of this rank runs: what it shows is noted, and moves nothing yet.
  void begin_part(int part);
  // To be called after the last part.
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
  ChunkSum sum_;
  Buffer own_;     // [n]: what the part that runs shows
  Buffer summed_;  // [n]: the weighted sum of those before it, then of all ranks
  int noted_ = -1;
};

}  // namespace tritgrad
