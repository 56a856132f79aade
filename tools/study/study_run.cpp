#include "tools/study/study_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>

#include "engine/check.h"
#include "engine/clock.h"
#include "engine/data/loader.h"
#include "engine/data/split.h"
#include "engine/formats/half_precision.h"
#include "engine/memory/ledger.h"
#include "engine/memory/parallel.h"
#include "engine/random.h"
#include "models/networks/model.h"
#include "models/training/evaluate.h"
#include "ops/loss.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/terminal.h"
#include "tools/report/statistics.h"

namespace tritgrad {
namespace {

// Interrupted says this, as files are written when the whole study is known.
constexpr const char* kNothingCameOfIt = "nothing came of the study";

// Shuffles once (Fisher-Yates): the order of rows in every epoch of a variant with fixed batches.
RowNumbers shuffled(RowNumbers rows, std::uint64_t seed) {
  const RandomKey key{seed, random_stream("fixed batches"), 0};
  for (std::size_t i = rows.size(); i > 1; --i) {
    std::swap(rows[i - 1], rows[random_below(key, i, static_cast<std::uint32_t>(i))]);
  }
  return rows;
}

// Compares all weights of the last three steps, to see how far and where a step went.
class UpdateMeter {
 public:
  explicit UpdateMeter(const Model& model) : model_(model) {
    for (const Parameter& parameter : model_.parameters()) {
      before_.resize(before_.size() + static_cast<std::size_t>(parameter.shape().size()));
    }
    update_.resize(before_.size());
    measure_step();
    std::fill(update_.begin(), update_.end(), 0.0);  // there was no step yet
  }

  // Called after a step.
  void measure_step() {
    double length = 0.0, change = 0.0;
    std::size_t at = 0;
    for (const Parameter& parameter : model_.parameters()) {
      const float* weights = parameter.storage().fp32_data();
      for (std::int64_t i = 0; i < parameter.shape().size(); ++i, ++at) {
        const double update = static_cast<double>(weights[i]) - static_cast<double>(before_[at]);
        length += update * update;
        change += (update - update_[at]) * (update - update_[at]);
        before_[at] = weights[i];
        update_[at] = update;
      }
    }
    length_ = std::sqrt(length);
    change_ = std::sqrt(change);
  }
  double length() const { return length_; }
  double change() const { return change_; }

 private:
  const Model& model_;
  std::vector<float> before_;
  std::vector<double> update_;  // of the step before
  double length_ = 0.0, change_ = 0.0;
};

double train_step(Model& model, Optimizer& optimizer, Tape& tape, const Batch& batch) {
  const Var logits = model.forward(tape, batch.x, {.training = true});
  const Var loss = softmax_cross_entropy(tape, logits, batch.labels);
  const double value = static_cast<double>(loss.value.data[0]);
  if (std::isfinite(value)) {
    tape.backward(loss, [&](Parameter& parameter) { optimizer.step(parameter); });
  }
  optimizer.advance();
  tape.reset();
  return value;
}

// A matrix, its optimizer and the times of its steps. MicroAdam is as it would be used: it keeps
// 1 % of the gradient, and has a 4-bit error feedback in buckets of 64.
class TimedMatrix {
 public:
  TimedMatrix(const char* rule, Form form, const Shape& shape)
      : recipe_(
            variant_recipe({.data = "cost", .form = form, .density = 0.01, .feedback_bits = 4})) {
    const Recipe::Group& weights = recipe_.group(Role::kWeight);
    const ParameterSpec spec{
        "matrix", Role::kWeight, shape, weights.format, {Initial::Kind::kNormal, 0.02f}};
    parameter_ = &store_.add(spec, 1);
    const std::int64_t before = ledger::live(Category::kMoments);
    optimizer_ = std::make_unique<Optimizer>(
        store_, [&](const ParameterSpec&) { return weights.update; }, 1000, 1);
    point_.parameters = shape.size();
    point_.rule = rule;
    point_.ledger_bytes = ledger::live(Category::kMoments) - before;
    point_.state_bytes = Optimizer::state_bytes(spec, weights.update);
  }

  // Returns the seconds that it took.
  double step(const Tensor& gradient) {
    parameter_->grad = gradient;
    const Clock::time_point start = Clock::now();
    optimizer_->step(*parameter_);
    const double seconds = seconds_since(start);
    optimizer_->advance();
    parameter_->grad = {};
    return seconds;
  }

  void add_sample(double seconds_per_step) { samples_.push_back(seconds_per_step); }

  CostPoint result() const {
    CostPoint point = point_;
    std::vector<double> sorted = samples_;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t quarter = sorted.size() / 4;
    point.seconds = {median(sorted), sorted[quarter], sorted[sorted.size() - 1 - quarter]};
    point.samples = static_cast<int>(sorted.size());
    return point;
  }

 private:
  Recipe recipe_;
  ParameterStore store_;
  Parameter* parameter_ = nullptr;
  std::unique_ptr<Optimizer> optimizer_;
  CostPoint point_;
  std::vector<double> samples_;
};

}  // namespace

const std::vector<Curve>& StudyResults::of(const Variant& variant) const {
  const auto found = curves.find(variant_key(variant));
  check(found != curves.end(), "study: no runs of '", variant_key(variant), "'");
  return found->second;
}

StudyResults run_study(std::vector<StudyFigure> figures, const StudyOptions& options) {
  const Clock::time_point start = Clock::now();
  StudyResults results{options, std::move(figures), {}, {}, 0.0};
  const std::vector<Variant> variants = all_variants(results.figures);
  const auto runs = static_cast<std::int64_t>(variants.size()) * options.seeds;
  std::map<std::string, std::int64_t> rows, steps;  // of one epoch
  std::int64_t all_steps = 0;
  for (const Variant& variant : variants) {
    const std::string& data = variant.data;
    if (!rows.contains(data)) {
      rows[data] = static_cast<std::int64_t>(fixed_split(study_dataset(data)).train.size());
      steps[data] = (rows[data] + kStudyBatch - 1) / kStudyBatch;
    }
    results.curves[variant_key(variant)].resize(static_cast<std::size_t>(options.seeds));
    all_steps += steps[data] * options.epochs * options.seeds;
  }

  // Epochs, steps and rows of the progress count over all runs, which go on at the same time.
  const InterruptWatch watch;
  std::mutex mutex;
  ProgressLine line(stderr, options.quiet, options.epochs * static_cast<int>(runs), all_steps);
  int epochs_done = 0;
  std::int64_t steps_done = 0, rows_done = 0;
  // Threads take the list in equal parts: short and long runs alternate with the seeds outermost.
  parallel_for(runs, [&](std::int64_t run) {
    watch.end_if_interrupted(kNothingCameOfIt);
    const std::size_t seed = static_cast<std::size_t>(run) / variants.size();
    const Variant& variant = variants[static_cast<std::size_t>(run) % variants.size()];
    const auto after_epoch = [&](double loss) {
      watch.end_if_interrupted(kNothingCameOfIt);
      const std::lock_guard<std::mutex> lock(mutex);
      steps_done += steps.at(variant.data);
      rows_done += rows.at(variant.data);
      line.update(++epochs_done, steps_done, loss, rows_done);
    };
    results.curves.at(variant_key(variant))[seed] = train_curve(
        study_dataset(variant.data), variant, options.epochs, std::uint64_t{seed} + 1, after_epoch);
  });
  results.seconds = seconds_since(start);
  return results;
}

ConstantBuckets::ConstantBuckets(Optimizer& optimizer) {
  for (const NamedArray& plane : optimizer.state()) {
    if (!plane.name.ends_with("/microadam/bounds")) continue;
    bounds_.emplace_back(reinterpret_cast<const std::uint16_t*>(plane.bytes.data()),
                         plane.bytes.size() / sizeof(std::uint16_t));
  }
  count_step();
  count_ = {count_.written, count_.zero, 0, 0, 0};
}

void ConstantBuckets::count_step() {
  for (const auto bounds : bounds_) {
    for (std::size_t i = 0; i + 1 < bounds.size(); i += 2) {
      const float low = float_of_bf16(bounds[i]), high = float_of_bf16(bounds[i + 1]);
      ++count_.written;
      count_.constant += low == high ? 1 : 0;
      count_.zero += low == high && low == 0.0f ? 1 : 0;
    }
  }
}

Curve train_curve(const Dataset& dataset, const Variant& variant, int epochs, std::uint64_t seed,
                  const std::function<void(double loss)>& after_epoch) {
  const Recipe recipe = variant_recipe(variant);
  const Split split = fixed_split(dataset);
  const Standardizer standardizer =
      variant.standardized ? Standardizer::fit(dataset, split.train)
                           : Standardizer(std::vector<float>{0.0f}, std::vector<float>{1.0f});
  Loader loader(dataset, variant.reshuffled ? split.train : shuffled(split.train, seed),
                standardizer, kStudyBatch, seed,
                variant.reshuffled ? RowOrder::kShuffled : RowOrder::kAsGiven);
  const std::int64_t steps = epochs * loader.batches_per_epoch();
  const std::int64_t untraced = steps - steps / 2;
  const auto model = make_model(study_model(), dataset.features, dataset.classes(), recipe, seed);
  Optimizer optimizer = make_optimizer(*model, recipe, steps, seed);
  Tape tape;
  UpdateMeter meter(*model);
  ConstantBuckets buckets(optimizer);
  StepTrace trace{untraced + 1, loader.batches_per_epoch(), {}, {}};
  Curve curve;

  for (int epoch = 0; epoch < epochs; ++epoch) {
    double sum = 0.0;
    std::vector<double> lengths;
    for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
      const Batch batch = loader.next();
      const double loss = train_step(*model, optimizer, tape, batch);
      sum += loss * static_cast<double>(batch.labels.size());
      buckets.count_step();
      meter.measure_step();
      lengths.push_back(meter.length());
      if (optimizer.steps_done() > untraced) trace.update_change.push_back(meter.change());
    }
    const double mean = sum / static_cast<double>(loader.rows_per_epoch());
    curve.epoch_loss.push_back(std::isfinite(mean) ? mean
                                                   : std::numeric_limits<double>::quiet_NaN());
    trace.epoch_length.push_back(phase_means(lengths, 0, 1)[0]);
    if (after_epoch) after_epoch(mean);
  }
  curve.numbers = measure_curve(curve.epoch_loss, trace);
  curve.numbers.buckets = buckets.count();
  const std::optional<Scores> test =
      evaluate(*model, tape, Classification(dataset, standardizer), split.test);
  curve.numbers.test_accuracy = test ? test->score : 0.0;
  return curve;
}

std::vector<CostPoint> measure_costs(const std::vector<std::int64_t>& sizes, int samples) {
  constexpr int kWarmUp = 10;  // rows of the window
  // A step of few parameters is shorter than what disturbs it.
  constexpr std::int64_t kParametersPerSample = std::int64_t{1} << 20;
  const InterruptWatch watch;
  std::vector<CostPoint> points;
  for (const std::int64_t size : sizes) {
    auto rows = static_cast<std::int64_t>(std::sqrt(static_cast<double>(size)));
    while (size % rows != 0) --rows;
    const Shape shape{rows, size / rows};
    TimedMatrix adam("Adam", Form::kAdam, shape), micro("MicroAdam", Form::kCorrected, shape);
    const auto bytes = static_cast<std::size_t>(size) * sizeof(float);
    Buffer numbers(bytes, Category::kWorkspace), memory(bytes, Category::kGradients);
    float* source = numbers.as<float>();
    const Tensor gradient{memory.as<float>(), shape};
    const RandomKey key{1, random_stream("gradient"), 0};
    for (std::int64_t i = 0; i < size; ++i) {
      source[i] = 2.0f * random_uniform(key, static_cast<std::uint64_t>(i)) - 1.0f;
    }
    std::int64_t gradients = 0;  // that both matrices have taken
    const auto run = [&](TimedMatrix& matrix, std::int64_t steps) {
      double seconds = 0.0;
      for (std::int64_t i = 0; i < steps; ++i) {
        watch.end_if_interrupted(kNothingCameOfIt);
        // Every step has the same numbers, but elsewhere. They are copied anew for each, as a rule
        // may use the gradient's memory as it likes.
        std::rotate_copy(source, source + (gradients + i) * 7919 % size, source + size,
                         gradient.data);
        seconds += matrix.step(gradient);
      }
      return seconds / static_cast<double>(steps);
    };
    for (TimedMatrix* matrix : {&adam, &micro}) run(*matrix, kWarmUp);
    gradients += kWarmUp;
    const std::int64_t steps = std::max<std::int64_t>(1, kParametersPerSample / size);
    for (int sample = 0; sample < samples; ++sample) {
      for (TimedMatrix* matrix : {&adam, &micro}) matrix->add_sample(run(*matrix, steps));
      gradients += steps;
    }
    points.push_back(adam.result());
    points.push_back(micro.result());
  }
  return points;
}

}  // namespace tritgrad
