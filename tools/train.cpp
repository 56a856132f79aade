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
#include "tools/run_log.h"
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

// What body() returns; the time it takes is added to `seconds`.
template <typename Body>
auto timed(double& seconds, const Body& body) {
  const Clock::time_point start = Clock::now();
  auto result = body();
  seconds += seconds_since(start);
  return result;
}

// A step on `batch` in options.micro_batches parts, whose gradients add up to that of the whole.
// Parts have two rows at least, where there are as many: batch statistics of one row are void.
struct StepSums {
  double loss = 0.0;  // mean over the batch
  std::int64_t correct = 0;
  std::int64_t rows = 0;  // 0: the step was skipped
};

StepSums train_step(Model& model, Optimizer& optimizer, Tape& tape, const Recipe& recipe,
                    const Batch& batch, const TrainOptions& options) {
  const std::int64_t rows = batch.x.rows();
  const std::int64_t parts =
      std::clamp<std::int64_t>(rows / 2, 1, std::max<std::int64_t>(1, options.micro_batches));
  const bool released = recipe.gradients == GradientPolicy::kReleased;
  StepSums sums;
  sums.rows = rows;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t begin = part * rows / parts;
    const std::int64_t n = (part + 1) * rows / parts - begin;
    const auto labels =
        batch.labels.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(n));
    const RandomKey key{options.seed, static_cast<std::uint32_t>(part),
                        static_cast<std::uint32_t>(optimizer.steps_done() + 1)};
    const Var logits = model.forward(tape, {batch.x.row(begin), {n, batch.x.cols()}},
                                     {.training = true, .key = key});
    const Var loss = softmax_cross_entropy(tape, logits, labels);
    const double loss_value = static_cast<double>(loss.value.data[0]);
    if (!std::isfinite(loss_value) && recipe.non_finite == NonFinite::kSkip) {
      tape.reset();
      optimizer.skip_step();
      return {};
    }
    check_loss(loss_value, optimizer.steps_done() + 1);
    const double share = static_cast<double>(n) / static_cast<double>(rows);
    sums.loss += loss_value * share;
    sums.correct += count_correct(logits.value, labels);
    // Every parameter moves as soon as its gradient is complete, or, with kept gradients, all
    // together when the last part has added to them.
    tape.backward(
        loss, [&](Parameter& parameter) { released ? optimizer.step(parameter) : void(); },
        static_cast<float>(share));
    tape.reset();
  }
  if (!released) {
    if (recipe.clip_grad_norm > 0.0) optimizer.clip_grad_norm(recipe.clip_grad_norm);
    optimizer.step();
  }
  optimizer.advance();
  return sums;
}

void add_step(EpochSums& sums, const StepSums& step, std::int64_t flips) {
  sums.loss += step.loss * static_cast<double>(step.rows);
  sums.correct += step.correct;
  sums.rows += step.rows;
  sums.flips += flips;
}

void warn(const std::string& warning, const Recipe& recipe, const TrainOptions& options,
          ProgressLine& progress) {
  if (warning.empty() || options.quiet) return;
  progress.clear();
  std::fprintf(stderr, "warning: recipe '%s': %s\n", recipe.name.c_str(), warning.c_str());
}

}  // namespace

void check_micro_batches(const TrainOptions& options, const Recipe& recipe) {
  check(options.micro_batches <= std::max<std::int64_t>(1, options.batch / 2), "--micro-batches ",
        options.micro_batches, ": a batch of ", options.batch, " rows has at most ",
        options.batch / 2, " parts of two rows");
  check(
      options.micro_batches <= 1 || recipe.gradients == GradientPolicy::kKept, "--micro-batches ",
      options.micro_batches, ": recipe '", recipe.name,
      "' releases each gradient as soon as it is used, so nothing can be added up; keep them with "
      "--set gradients=kept");
}

RunResult train(const Dataset& dataset, const Split& split, const TrainOptions& options) {
  const Clock::time_point start = Clock::now();
  const Recipe recipe = recipe_of(options);
  check_micro_batches(options, recipe);
  const Standardizer standardizer = Standardizer::fit(dataset, split.train);
  Loader loader(dataset, split.train, standardizer, options.batch, options.seed,
                RowOrder::kShuffled, parse_augmentation(options.augment));
  const std::int64_t steps_per_epoch = loader.batches_per_epoch();
  const std::int64_t total_steps = options.epochs * steps_per_epoch;

  const auto model = make_model(options.model, dataset, dataset.classes(), recipe, options.seed);
  Optimizer optimizer = make_optimizer(*model, recipe, total_steps, options.seed);
  TrainingState state(*model, optimizer, loader, standardizer, dataset, options, recipe);
  if (!options.resume.empty()) state.load(options.resume);
  check_stop(options, optimizer.steps_done());

  ledger::reset_peak();
  Tape tape;
  RunLog log(options.log, options.seed, state.curve());
  ProgressLine progress(stderr, options.quiet, options.epochs, total_steps, optimizer.steps_done());
  RunResult result = describe_run(dataset, options, recipe, *model);
  StallWatch stall(!options.resume.empty());
  std::int64_t examples = 0;
  TimeSpent time{.preparing = seconds_since(start)};

  while (optimizer.steps_done() < total_steps) {
    const Batch batch = timed(time.batches, [&] { return loader.next(); });
    EpochSums& sums = state.sums();
    const StepSums step = timed(
        time.steps, [&] { return train_step(*model, optimizer, tape, recipe, batch, options); });
    add_step(sums, step, optimizer.take_flips().flips);
    examples += static_cast<std::int64_t>(batch.labels.size());

    const std::int64_t done = optimizer.steps_done();
    progress.update(static_cast<int>((done - 1) / steps_per_epoch) + 1, done,
                    sums.loss / static_cast<double>(std::max<std::int64_t>(1, sums.rows)),
                    examples);
    if (done % steps_per_epoch == 0) {
      state.end_epoch(timed(time.evaluation,
                            [&] { return evaluate(*model, dataset, split.val, standardizer); }));
      log.write(state.curve().back());
      warn(stall.look(optimizer), recipe, options, progress);
    }
    const bool stop = options.stop_after > 0 && done >= options.stop_after;
    const bool due = options.save_every > 0 && done % options.save_every == 0;
    if (!options.save.empty() && (due || stop || done % steps_per_epoch == 0))
      state.save(options.save);
    if (stop) break;
  }
  progress.finish();

  result.test_accuracy =
      timed(time.evaluation, [&] { return evaluate(*model, dataset, split.test, standardizer); });
  result.seconds = seconds_since(start);
  result.time = time;
  state.describe(result);
  result.movable_fraction = stall.movable(optimizer, model->parameters());
  result.skipped_updates = optimizer.skipped_updates();
  return result;
}

}  // namespace tritgrad
