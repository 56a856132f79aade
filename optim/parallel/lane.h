// How the gradient of one parameter gets from the ranks to the optimizer.
//
// Each rank works on some parts (micro-batches) of the batch. A lane collects what a parameter's
// gradient is in each of them, hands it to a reduction, and leaves in the parameter what the whole
// batch says, the same bits on all ranks.
#pragma once

#include <memory>

#include "engine/parameter.h"
#include "optim/parallel/compressed_mean.h"

namespace tritgrad {

// The parts of a batch that a rank works on: [begin, end) of `all`.
struct Parts {
  int begin = 0, end = 1, all = 1;

  int count() const { return end - begin; }
  // Those of a rank; some have none where there are more ranks than parts.
  static Parts of_rank(int rank, int ranks, int all) {
    return {rank * all / ranks, (rank + 1) * all / ranks, all};
  }
};

class Lane {
 public:
  explicit Lane(Parameter& parameter) : parameter_(&parameter) {}
  virtual ~Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Before the first part of a step.
  virtual void begin(const Parts& /*parts*/) {}
  // The parameter's gradient is complete in one of this rank's parts; it is weighted with the
  // part's share of the batch. Kept gradients add up by themselves.
  virtual void collect(int /*part*/) {}
  // Whether what was collected is finite: nothing else may be reduced.
  virtual bool is_finite() const;
  // What has to be reduced now.
  virtual Reduction& reduction() = 0;
  // After the reduction: the parameter gets the joint gradient, until release().
  virtual void deliver() {}
  void release() { parameter().gradient_source = nullptr; }

  // What compression has still to send; null for lanes that drop nothing.
  virtual CompressedMean* compressed() { return nullptr; }

  Parameter& parameter() const { return *parameter_; }

 protected:
  std::int64_t size() const { return parameter_->shape().size(); }

 private:
  Parameter* parameter_;
};

// The sum of all shares in the order of the ranks; travels in the format in which gradients are
// kept, fp32 or bf16.
std::unique_ptr<Lane> make_sum_lane(const Communicator& ranks, Parameter& parameter,
                                    FormatKind format);
// The sum in the order of the parts, which no number of ranks changes. Every part travels.
std::unique_ptr<Lane> make_ordered_lane(const Communicator& ranks, Parameter& parameter);
// Each part votes with the sign of its gradient; the joint gradient is the mean vote, or its sign
// (majority). Exact: votes and their sums are integers. What is not finite abstains.
std::unique_ptr<Lane> make_vote_lane(const Communicator& ranks, Parameter& parameter,
                                     bool majority);
// The mean over the ranks as int8, with error feedback.
std::unique_ptr<Lane> make_int8_lane(const Communicator& ranks, Parameter& parameter);

}  // namespace tritgrad
