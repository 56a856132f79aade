// The page of a step: forward -> loss -> tape.backward -> gradient is ready -> optimizer.step.
#include "models/training/training_step.h"

#include <algorithm>
#include <cmath>

#include "engine/check.h"
#include "engine/clock.h"
#include "engine/text.h"
#include "models/networks/llama.h"

namespace tritgrad {
namespace {

void check_loss(double loss, std::int64_t step) {
  if (std::isfinite(loss)) return;
  throw Diverged(
      concat("the loss is ", std::abs(loss), " at step ", step,
             "; nothing more was saved; lower the learning rate (--lr) and check the data"));
}

// Returns the fewest rows of a part: two, where there are as many, as batch statistics of one row
// are void, which transformers have none of.
std::int64_t least_rows(const TrainSpec& spec) { return is_llama(spec.model) ? 1 : 2; }

const char* least_rows_text(const TrainSpec& spec) {
  return least_rows(spec) == 1 ? "a row" : "two rows";
}

// Returns the parts into which a batch of so many rows is cut, and those of them that are this
// rank's.
Parts parts_of(const TrainSpec& spec, const Communicator* ranks, std::int64_t rows) {
  const int all = static_cast<int>(std::clamp<std::int64_t>(
      rows / least_rows(spec), 1, std::max<std::int64_t>(1, spec.micro_batches)));
  if (ranks == nullptr) return {0, all, all};
  return Parts::of_rank(ranks->rank(), ranks->size(), all);
}

// Returns the first row of a part.
std::int64_t part_begin(int part, const Parts& parts, std::int64_t rows) {
  return part * rows / parts.all;
}

// Returns body(), whose time is added to that of a phase.
template <typename Body>
auto timed_phase(const Job& job, double StepTimes::*phase, const Body& body) {
  return timed(job.times == nullptr ? nullptr : &(job.times->*phase), body);
}

struct PartResult {
  Var outputs, loss;
};

PartResult forward_part(const Job& job, const Batch& part, const RandomKey& key) {
  const Var outputs = job.model.forward(
      job.tape, part.x, {.training = true, .key = key, .recompute = job.spec.recompute});
  return {outputs, job.task.loss(job.tape, outputs, part)};
}

// Runs backward of a part's loss, which counts by `weight`, its part of the rows; parameters move
// where they need not wait.
void backward_part(const Job& job, const Var& loss, int part, double weight) {
  const bool released = job.recipe.gradients == GradientPolicy::kReleased;
  double updates = 0.0;
  timed_phase(job, &StepTimes::backward, [&] {
    job.tape.backward(
        loss,
        [&](Parameter& parameter) {
          if (job.parallel != nullptr) {
            job.parallel->collect(parameter, part);
          } else if (released) {
            timed(job.times == nullptr ? nullptr : &updates,
                  [&] { job.optimizer.step(parameter); });
          }
        },
        static_cast<float>(weight));
  });
  if (job.times == nullptr) return;
  job.times->backward -= updates;
  job.times->update += updates;
}

// Runs forward and backward of one part, whose gradients add up to that of the whole batch. Every
// parameter moves as soon as its gradient is complete, or, with kept gradients, all together when
// the last part has added to them.
void run_part(const Job& job, const Batch& batch, int part, const Parts& parts, BatchSums& sums) {
  const std::int64_t begin = part_begin(part, parts, batch.whole) - batch.first;
  const std::int64_t n = part_begin(part + 1, parts, batch.whole) - batch.first - begin;
  const Batch rows = batch.part(begin, n);
  const RandomKey key{job.spec.seed, static_cast<std::uint32_t>(part),
                      static_cast<std::uint32_t>(job.step())};
  const PartResult done =
      timed_phase(job, &StepTimes::forward, [&] { return forward_part(job, rows, key); });
  const double loss_value = static_cast<double>(done.loss.value.data[0]);
  sums.finite = std::isfinite(loss_value);
  if (job.recipe.non_finite == NonFinite::kRefuse) check_loss(loss_value, job.step());
  if (sums.finite) {
    const double weight = static_cast<double>(n) / static_cast<double>(batch.whole);
    sums.loss += loss_value * weight;
    sums.score += job.task.training_score(done.outputs.value, rows, loss_value);
    backward_part(job, done.loss, part, weight);
  }
  job.tape.reset();
}

}  // namespace

std::pair<std::int64_t, std::int64_t> rows_of_rank(const TrainSpec& spec, const Communicator* ranks,
                                                   std::int64_t rows) {
  const Parts parts = parts_of(spec, ranks, rows);
  return {part_begin(parts.begin, parts, rows), part_begin(parts.end, parts, rows)};
}

BatchSums train_step(const Job& job, const Batch& batch) {
  const Communicator* ranks = job.parallel == nullptr ? nullptr : &job.parallel->ranks();
  const Parts parts = parts_of(job.spec, ranks, batch.whole);
  BatchSums sums;
  if (job.parallel != nullptr) job.parallel->begin(parts);
  for (int part = parts.begin; part < parts.end && sums.finite; ++part) {
    if (job.parallel != nullptr) job.parallel->begin_part(part);
    run_part(job, batch, part, parts, sums);
  }
  if (job.parallel != nullptr) {
    sums = job.parallel->exchange(sums);
    if (!sums.finite && job.recipe.non_finite == NonFinite::kRefuse) {
      throw Diverged(concat("step ", job.step(),
                            ": a gradient is not finite; nothing was changed; lower the learning "
                            "rate, or set non_finite = \"skip\" to leave such steps out"));
    }
  }
  if (!sums.finite) {
    job.optimizer.skip_step();
    return sums;
  }
  timed_phase(job, &StepTimes::update, [&] {
    if (job.parallel != nullptr || job.recipe.gradients == GradientPolicy::kKept) {
      if (job.recipe.clip_grad_norm > 0.0) job.optimizer.clip_grad_norm(job.recipe.clip_grad_norm);
      job.optimizer.step();
    }
    if (job.parallel != nullptr) job.parallel->end_step();
    job.optimizer.advance();
  });
  return sums;
}

void check_recomputation(const TrainSpec& spec) {
  check(!spec.recompute || is_llama(spec.model), "--recompute: model '", spec.model,
        "' keeps what its layers make, only layers of llama:LAYERS,WIDTH are computed again; leave "
        "the option out, or save activations with --micro-batches");
}

void check_micro_batches(const TrainOptions& options, const Recipe& recipe) {
  const std::int64_t most = std::max<std::int64_t>(1, options.batch / least_rows(options));
  const std::int64_t ranks = options.ranks == nullptr ? 1 : options.ranks->size();
  check(ranks <= most || options.micro_batches != ranks, "--batch ", options.batch, ": ", ranks,
        " ranks need a part of ", least_rows_text(options), " each; give ",
        least_rows(options) * ranks, " rows or more, or start at most ", most,
        most == 1 ? " rank" : " ranks");
  check(options.micro_batches <= most, "--micro-batches ", options.micro_batches, ": a batch of ",
        counted(options.batch, "row"), " has at most ", counted(most, "part"), " of ",
        least_rows_text(options), "; give a larger --batch");
  check(options.micro_batches <= 1 || options.parallel.method != ParallelMethod::kNone ||
            recipe.gradients == GradientPolicy::kKept,
        "--micro-batches ", options.micro_batches, ": ", recipe.where,
        " releases each gradient as soon as it is used, so nothing can be added up; keep them with "
        "--set gradients=kept");
}

}  // namespace tritgrad
