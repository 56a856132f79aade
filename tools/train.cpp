// The page to read first: how a network is trained, in the order in which the data flow.
//
//   dataset -> batch -> model.forward(tape) -> loss -> tape.backward -> gradient is ready
//           -> optimizer.step(parameter) -> storage -> checkpoint
#include "tools/train.h"

#include <chrono>

#include "engine/diverged.h"
#include "engine/hash.h"
#include "engine/loader.h"
#include "models/model.h"
#include "ops/loss.h"
#include "tools/evaluate.h"
#include "tools/interrupt.h"
#include "tools/parallel_run.h"
#include "tools/run_log.h"
#include "tools/shell_quoted.h"
#include "tools/stall.h"
#include "tools/training_state.h"

namespace tritgrad {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void check_loss(double loss, std::int64_t step) {
  if (std::isfinite(loss)) return;
  throw Diverged(
      concat("the loss is ", std::abs(loss), " at step ", step,
             "; nothing more was saved; lower the learning rate (--lr) and check the data"));
}

// A resumed run goes on with the recipe in its checkpoint, whatever became of the recipe's file.
Recipe recipe_of(const TrainOptions& options) {
  return options.resume.empty() ? load_recipe(options.recipe, options.overrides)
                                : saved_model(options.resume).recipe;
}

void check_stop(const TrainOptions& options, std::int64_t steps_done) {
  check(options.stop_after == 0 || options.stop_after > steps_done, "--stop-after ",
        options.stop_after, ": the checkpoint '", options.resume, "' has ", steps_done,
        " steps already; leave the option out or name a later step");
}

// What is left of a run that ended early.
std::string what_was_saved(const TrainOptions& options) {
  if (options.folds > 0) return "nothing was saved";
  if (options.save.empty()) return "nothing was saved, as --save was not given";
  std::string go_on = "tritgrad train --resume " + shell_quoted(options.save);
  if (options.save_every > 0) go_on += concat(" --save-every ", options.save_every);
  if (!options.log.empty()) go_on += " --log " + shell_quoted(options.log);
  if (!options.cache.empty()) go_on += " --cache " + shell_quoted(options.cache);
  return "saved; to go on: " + go_on;
}

Interrupted interruption(const TrainOptions& options, std::int64_t done, std::int64_t total) {
  return Interrupted(
      concat("interrupted after step ", done, " of ", total, "; ", what_was_saved(options)));
}

// A run of one step is over before it looks, so of many such runs none would ever be ended.
void begin_unless_interrupted(const TrainOptions& options) {
  if (options.ranks != nullptr) return;  // they would wait for the one that stopped
  if (InterruptWatch().interrupted()) {
    throw Interrupted("interrupted before the first step of a run; nothing was saved of it");
  }
}

// What body() returns; the time it takes is added to `seconds`.
template <typename Body>
auto timed(double& seconds, const Body& body) {
  const Clock::time_point start = Clock::now();
  auto result = body();
  seconds += seconds_since(start);
  return result;
}

// What a step works with.
struct Job {
  const TrainOptions& options;
  const Recipe& recipe;
  Model& model;
  Optimizer& optimizer;
  Tape& tape;
  DataParallel* parallel;  // null: this process alone

  std::int64_t step() const { return optimizer.steps_done() + 1; }
};

// The parts into which a batch of so many rows is cut, and those of them that are this rank's. They
// have two rows at least, where there are as many: batch statistics of one row are void.
Parts parts_of(const TrainOptions& options, std::int64_t rows) {
  const int all = static_cast<int>(
      std::clamp<std::int64_t>(rows / 2, 1, std::max<std::int64_t>(1, options.micro_batches)));
  if (options.ranks == nullptr) return {0, all, all};
  return Parts::of_rank(options.ranks->rank(), options.ranks->size(), all);
}

// The first row of a part.
std::int64_t part_begin(int part, const Parts& parts, std::int64_t rows) {
  return part * rows / parts.all;
}

// Forward and backward of one part, whose gradients add up to that of the whole batch. Every
// parameter moves as soon as its gradient is complete, or, with kept gradients, all together when
// the last part has added to them.
void run_part(const Job& job, const Batch& batch, int part, const Parts& parts, BatchSums& sums) {
  const std::int64_t begin = part_begin(part, parts, batch.whole) - batch.first;
  const std::int64_t n = part_begin(part + 1, parts, batch.whole) - batch.first - begin;
  const auto labels =
      batch.labels.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(n));
  const RandomKey key{job.options.seed, static_cast<std::uint32_t>(part),
                      static_cast<std::uint32_t>(job.step())};
  const Var logits = job.model.forward(job.tape, {batch.x.row(begin), {n, batch.x.cols()}},
                                       {.training = true, .key = key});
  const Var loss =
      softmax_cross_entropy(job.tape, logits, labels, job.options.label_smoothing.value_or(0.0));
  const double loss_value = static_cast<double>(loss.value.data[0]);
  sums.finite = std::isfinite(loss_value);
  if (job.recipe.non_finite == NonFinite::kRefuse) check_loss(loss_value, job.step());
  if (sums.finite) {
    const double share = static_cast<double>(n) / static_cast<double>(batch.whole);
    sums.loss += loss_value * share;
    sums.correct += count_correct(logits.value, labels);
    const bool released = job.recipe.gradients == GradientPolicy::kReleased;
    job.tape.backward(
        loss,
        [&](Parameter& parameter) {
          if (job.parallel != nullptr) {
            job.parallel->collect(parameter, part);
          } else if (released) {
            job.optimizer.step(parameter);
          }
        },
        static_cast<float>(share));
  }
  job.tape.reset();
}

// A step on the parts of `batch` that are this rank's; the sums are those of all parts.
BatchSums train_step(const Job& job, const Batch& batch) {
  const Parts parts = parts_of(job.options, batch.whole);
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
  if (job.parallel != nullptr || job.recipe.gradients == GradientPolicy::kKept) {
    if (job.recipe.clip_grad_norm > 0.0) job.optimizer.clip_grad_norm(job.recipe.clip_grad_norm);
    job.optimizer.step();
  }
  if (job.parallel != nullptr) job.parallel->end_step();
  job.optimizer.advance();
  return sums;
}

void add_step(EpochSums& sums, const BatchSums& step, std::int64_t rows, std::int64_t flips) {
  sums.flips += flips;
  if (!step.finite) return;
  sums.loss += step.loss * static_cast<double>(rows);
  sums.correct += step.correct;
  sums.rows += rows;
}

// The rows of a batch that are this rank's.
Loader make_loader(const Dataset& dataset, const Split& split, const Standardizer& standardizer,
                   const TrainOptions& options) {
  Loader loader(dataset, split.train, standardizer, options.batch, options.seed,
                RowOrder::kShuffled, parse_augmentation(options.augment));
  loader.restrict_to([options](std::int64_t rows) {
    const Parts parts = parts_of(options, rows);
    return std::pair(part_begin(parts.begin, parts, rows), part_begin(parts.end, parts, rows));
  });
  return loader;
}

// A run from its first step, or from a checkpoint, to its result.
class TrainingRun {
 public:
  TrainingRun(const Dataset& dataset, const Split& split, const TrainOptions& options,
              const Recipe& recipe)
      : dataset_(dataset),
        split_(split),
        options_(options),
        recipe_(recipe),
        standardizer_(Standardizer::fit(dataset, split.train, options.pixel_scale())),
        loader_(make_loader(dataset, split, standardizer_, options)),
        total_steps_(options.epochs * loader_.batches_per_epoch()),
        model_(make_model(options.model, dataset, dataset.classes(), recipe, options.seed)),
        optimizer_(make_optimizer(*model_, recipe, total_steps_, options.seed)),
        parallel_(make_parallel(options, recipe, *model_, optimizer_)),
        state_(*model_, optimizer_, loader_, standardizer_, dataset, options, recipe,
               parallel_.get()),
        stall_(!options.resume.empty()) {
    if (!options.resume.empty()) state_.load(options.resume);
    check_stop(options, optimizer_.steps_done());
    ledger::reset_peak();
  }

  RunResult run();

 private:
  void run_steps(RunLog& log, ProgressLine& progress);
  void end_epoch(RunLog& log, ProgressLine& progress);
  std::optional<double> accuracy_on(const std::vector<std::int32_t>& rows) {
    return timed(time_.evaluation, [&] {
      return evaluate(*model_, tape_, dataset_, rows, standardizer_, options_.ranks);
    });
  }
  void warn(const std::string& warning, ProgressLine& progress) const {
    if (warning.empty() || options_.quiet) return;
    progress.clear();
    std::fprintf(stderr, "warning: recipe '%s': %s\n", recipe_.name.c_str(), warning.c_str());
  }

  // Said once, whatever the number of ranks.
  void note(const std::string& sentence) const {
    if (options_.quiet || (options_.ranks != nullptr && options_.ranks->rank() > 0)) return;
    std::fprintf(stderr, "note: %s\n", sentence.c_str());
  }

  const Clock::time_point start_ = Clock::now();
  const Dataset& dataset_;
  const Split& split_;
  const TrainOptions& options_;
  const Recipe& recipe_;
  const Standardizer standardizer_;
  Loader loader_;
  const std::int64_t total_steps_;
  const std::unique_ptr<Model> model_;
  Optimizer optimizer_;
  const std::unique_ptr<DataParallel> parallel_;
  TrainingState state_;
  StallWatch stall_;
  Tape tape_;
  TimeSpent time_;
};

void TrainingRun::end_epoch(RunLog& log, ProgressLine& progress) {
  state_.end_epoch(accuracy_on(split_.val));
  log.write(state_.curve().back());
  warn(stall_.look(optimizer_, model_->parameters()), progress);
}

void TrainingRun::run_steps(RunLog& log, ProgressLine& progress) {
  const Job job{options_, recipe_, *model_, optimizer_, tape_, parallel_.get()};
  const std::int64_t steps_per_epoch = loader_.batches_per_epoch();
  std::int64_t examples = 0;
  std::optional<InterruptWatch> watch;  // ranks would wait for the one that stopped
  if (options_.ranks == nullptr) watch.emplace();
  bool stop = false;
  // Of a finished run that is resumed nothing is left to do but the copy that was asked for.
  if (optimizer_.steps_done() == total_steps_ && !options_.save.empty() &&
      options_.save != options_.resume) {
    state_.save(options_.save);
  }
  while (!stop && optimizer_.steps_done() < total_steps_) {
    const Batch batch = timed(time_.batches, [&] { return loader_.next(); });
    EpochSums& sums = state_.sums();
    const BatchSums step = timed(time_.steps, [&] { return train_step(job, batch); });
    add_step(sums, step, batch.whole, optimizer_.take_flips().flips);
    examples += batch.whole;

    const std::int64_t done = optimizer_.steps_done();
    progress.update(static_cast<int>((done - 1) / steps_per_epoch) + 1, done,
                    sums.loss / static_cast<double>(std::max<std::int64_t>(1, sums.rows)),
                    examples);
    const bool epoch_ends = done % steps_per_epoch == 0;
    if (epoch_ends) end_epoch(log, progress);
    const bool interrupted = watch && watch->interrupted();
    stop = interrupted || (options_.stop_after > 0 && done >= options_.stop_after);
    const bool due = options_.save_every > 0 && done % options_.save_every == 0;
    if (!options_.save.empty() && (due || stop || epoch_ends)) state_.save(options_.save);
    if (interrupted && done < total_steps_) throw interruption(options_, done, total_steps_);
  }
}

RunResult TrainingRun::run() {
  RunLog log(options_.log, options_.seed, state_.curve());
  ProgressLine progress(stderr, options_.quiet, options_.epochs, total_steps_,
                        optimizer_.steps_done());
  RunResult result = describe_run(dataset_, options_, recipe_, *model_);
  time_.preparing = seconds_since(start_);
  if (optimizer_.steps_done() == total_steps_) {
    note(concat("the run in '", options_.resume, "' is finished; to train on give --epochs above ",
                options_.epochs));
  }
  run_steps(log, progress);
  if (parallel_ && parallel_->never_compressed()) {
    warn(concat("the second moment never settled, so all ", total_steps_,
                " steps were warm-up and nothing was compressed; give the warm-up a share of the "
                "steps (--dp-warmup 0.2)"),
         progress);
  }
  progress.finish();
  if (optimizer_.steps_done() < total_steps_) {
    note(concat("stopped after step ", optimizer_.steps_done(), " of ", total_steps_, "; ",
                what_was_saved(options_)));
  }

  result.test_accuracy = accuracy_on(split_.test);
  result.seconds = seconds_since(start_);
  result.time = time_;
  state_.describe(result);
  result.movable_fraction = stall_.movable(optimizer_, model_->parameters());
  result.skipped_updates = optimizer_.skipped_updates();
  if (parallel_) {
    result.traffic = traffic_of(*parallel_, options_, recipe_, model_->parameters());
  }
  return result;
}

}  // namespace

void check_micro_batches(const TrainOptions& options, const Recipe& recipe) {
  const std::int64_t most = std::max<std::int64_t>(1, options.batch / 2);
  const std::int64_t ranks = options.ranks == nullptr ? 1 : options.ranks->size();
  check(ranks <= most || options.micro_batches != ranks, "--batch ", options.batch, ": ", ranks,
        " ranks need a part of two rows each; give ", 2 * ranks, " rows or more, or start at most ",
        most, most == 1 ? " rank" : " ranks");
  check(options.micro_batches <= most, "--micro-batches ", options.micro_batches, ": a batch of ",
        options.batch, " rows has at most ", most, most == 1 ? " part" : " parts", " of two rows");
  check(options.micro_batches <= 1 || options.parallel.method != ParallelMethod::kNone ||
            recipe.gradients == GradientPolicy::kKept,
        "--micro-batches ", options.micro_batches, ": ", recipe.where,
        " releases each gradient as soon as it is used, so nothing can be added up; keep them with "
        "--set gradients=kept");
}

RunResult train(const Dataset& dataset, const Split& split, const TrainOptions& options) {
  begin_unless_interrupted(options);
  const Recipe alone = recipe_of(options);
  check_same_job(dataset, options, alone);
  const Recipe recipe = joint_recipe(options.parallel, alone);
  check_micro_batches(options, recipe);
  return TrainingRun(dataset, split, options, recipe).run();
}

}  // namespace tritgrad
