#include "models/training/training_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/check.h"
#include "engine/clock.h"
#include "engine/data/token_text.h"
#include "engine/files/hash.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

// Throws Error unless a run goes on as the one that was saved.
void check_same_run(const SavedRun& saved, const TrainSpec& spec) {
  constexpr std::size_t kMostShown = 200;  // of a text that a file may have made longer
  const std::vector<FieldText> before = field_texts(saved.spec()), now = field_texts(spec);
  for (std::size_t i = 0; i < now.size(); ++i) {
    const Field& field = now[i].field;
    if ((field.traits & (kOfData | kChangeable | kUnsaved)) != 0) continue;
    check(before[i].text == now[i].text, "checkpoint '", saved.path(),
          "': it was written with another ", field.what, " (", field.option, "), '",
          printable(std::string_view(before[i].text).substr(0, kMostShown)), "' and not '",
          now[i].text, "'; resume with the same");
  }
}

// No NaN and no infinity may be saved or reported as a model.
void check_finite(const ParameterStore& store) {
  for (const Parameter& parameter : store) {
    for_each_block(parameter.shape(), [&](const Block& block) {
      std::array<float, kBlock> master;
      parameter.storage().decode_master(block, master.data());
      for (std::int64_t i = 0; i < block.n; ++i) {
        if (std::isfinite(master[static_cast<std::size_t>(i)])) continue;
        throw Diverged(concat(
            "parameter '", parameter.name(),
            "' is no longer finite; nothing was saved of it, lower the learning rate (--lr)"));
      }
    });
  }
}

// Throws Error unless all ranks have read the same state, each from a file of its own.
void check_same_checkpoint(Communicator& ranks, const SavedRun& saved,
                           const std::vector<NamedArray>& planes) {
  check_agreement(ranks, "step in its checkpoint (--resume)", std::to_string(saved.step()));
  std::string state = saved.text();
  for (const NamedArray& plane : planes) state += hex(xxh3(plane.bytes, plane.order));
  check_agreement(ranks, "checkpoint (--resume)", state);
}

void append(std::vector<NamedArray>& planes, const std::vector<NamedArray>& more) {
  planes.insert(planes.end(), more.begin(), more.end());
}

}  // namespace

TrainingState::TrainingState(Model& model, Optimizer& optimizer, Loader& loader,
                             const Standardizer& standardizer, const TargetScale& target_scale,
                             const Dataset& dataset, const TrainOptions& options,
                             const Recipe& recipe, DataParallel* parallel)
    : model_(&model),
      optimizer_(&optimizer),
      loader_(&loader),
      dataset_(&dataset),
      options_(options),
      recipe_(recipe),
      parallel_(parallel),
      means_(standardizer.means()),
      inverse_stds_(standardizer.inverse_stds()),
      target_scale_(target_scale),
      tokenizer_(dataset.is_text() ? dataset.text->tokenizer().model() : "") {
  const bool is_first = parallel == nullptr || parallel->ranks().rank() == 0;
  if (is_first && !options.save.empty()) checkpoint_.emplace(options.save);
}

void TrainingState::add(const BatchSums& step, std::int64_t rows) {
  sums_.flips += optimizer_->take_flips().flips;
  if (!step.finite) return;
  sums_.loss += step.loss * static_cast<double>(rows);
  sums_.score += step.score;
  sums_.rows += rows;
}

void TrainingState::end_epoch(double train_score, std::optional<double> val_score) {
  // NaN when all steps were left out.
  const double loss = sums_.loss / static_cast<double>(sums_.rows);
  curve_.push_back({static_cast<double>(curve_.size() + 1), loss, train_score, val_score});
  total_flips_ += sums_.flips;
  sums_ = {};
}

std::vector<NamedArray> TrainingState::optimizer_planes() { return optimizer_->state(); }

std::vector<NamedArray> TrainingState::planes() {
  std::vector<NamedArray> planes = parameter_planes(model_->parameters());
  append(planes, optimizer_planes());
  if (parallel_ != nullptr) append(planes, parallel_->state());
  add_standardizer_planes(means_, inverse_stds_, planes);
  if (dataset_->is_regression()) add_target_planes(target_scale_, planes);
  if (!tokenizer_.empty()) add_tokenizer_plane(tokenizer_, planes);
  return planes;
}

RunPosition TrainingState::position() const {
  return {optimizer_->steps_done(),
          optimizer_->skipped_updates(),
          loader_->cursor(),
          sums_,
          total_flips_,
          curve_};
}

void TrainingState::save() {
  timed(&saving_seconds_, [&] { save_whole(); });
}

void TrainingState::save_whole() {
  check_finite(model_->parameters());
  if (parallel_ != nullptr) {
    check_agreement(parallel_->ranks(), "set of weights", weights_sha256(model_->parameters()));
    parallel_->gather_state();
  }
  if (checkpoint_) {
    write(*checkpoint_);
    checkpoint_->commit_and_hold();
  }
  if (parallel_ != nullptr) parallel_->forget_state();
}

void TrainingState::write(AtomicFile& file) {
  write([&](std::span<const std::byte> piece) { file.write(piece); }, file.path().string());
}

void TrainingState::write(const ByteSink& sink, const std::string& name) {
  if (data_xxh3_.empty()) data_xxh3_ = data_xxh3(*dataset_);
  const int ranks = parallel_ == nullptr ? 0 : parallel_->ranks().size();
  write_checkpoint(sink, run_metadata(options_, recipe_, *dataset_, data_xxh3_, position(), ranks),
                   planes(), name);
}

void TrainingState::save_copy(const std::string& path) {
  check(parallel_ == nullptr, "'", path, "': a run of several ranks is saved by --save");
  check(is_replaceable(path), "'", path,
        "' is there and is no checkpoint, or a damaged one; delete it, or name another file");
  check_finite(model_->parameters());
  AtomicFile file(path);
  write(file);
  file.commit();
}

std::vector<std::byte> TrainingState::checkpoint_bytes() {
  check(parallel_ == nullptr, "a run of several ranks is saved by --save");
  check_finite(model_->parameters());
  std::vector<std::byte> bytes;
  write(
      [&](std::span<const std::byte> piece) {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
      },
      "checkpoint");
  return bytes;
}

void TrainingState::load(const SavedRun& saved) {
  saved.check_inputs(*dataset_);
  saved.check_image(*dataset_);
  saved.check_same_data(*dataset_, "a resumed run needs the same rows, labels and classes");
  check_same_run(saved, options_);
  const std::int64_t steps_per_epoch = loader_->batches_per_epoch();
  RunPosition position = saved.position(steps_per_epoch);
  check(position.step <= options_.epochs * steps_per_epoch, "--epochs ", options_.epochs,
        ": the checkpoint '", saved.path(), "' has ", position.step, " steps already, ",
        steps_per_epoch, " an epoch; give ",
        (position.step + steps_per_epoch - 1) / steps_per_epoch, " or more");

  check(options_.stop_after == 0 || options_.stop_after > position.step, "--stop-after ",
        options_.stop_after, ": the checkpoint '", saved.path(), "' has ", position.step,
        " steps already; leave the option out or name a later step");

  const int saved_ranks = parallel_ == nullptr ? 1 : saved.ranks();
  if (parallel_ != nullptr) parallel_->allocate_state(saved_ranks);
  const std::vector<NamedArray> loaded = planes();
  saved.load(loaded);
  if (parallel_ != nullptr) check_same_checkpoint(parallel_->ranks(), saved, loaded);
  optimizer_->resume_at(position.step, position.skipped_updates);
  if (parallel_ != nullptr) parallel_->restore(saved_ranks);
  loader_->seek(position.cursor);
  sums_ = position.sums;
  total_flips_ = position.total_flips;
  curve_ = std::move(position.curve);
}

void TrainingState::describe(RunResult& result) {
  check_finite(model_->parameters());
  const Footprint bytes = live_footprint(*model_, *optimizer_, recipe_).total;
  result.bytes_per_parameter = bytes.map([&](std::int64_t n) {
    return static_cast<double>(n) / static_cast<double>(result.parameters);
  });
  result.peak_live_bytes = ledger::peak_total();
  result.data_bytes = ledger::live(Category::kData);
  result.steps = optimizer_->steps_done();
  result.time.saving = saving_seconds_;
  result.curve = curve_;
  if (!curve_.empty()) {
    result.train_loss = curve_.back().train_loss;
    result.val_score = curve_.back().val_score;
  } else {
    result.train_loss = sums_.loss / static_cast<double>(sums_.rows);
  }
  std::int64_t zeros = 0;
  std::int64_t trits = 0;
  for (const Parameter& parameter : model_->parameters()) {
    if (!parameter.spec().format.traits().is_ternary) continue;
    zeros += count_zeros(parameter.storage());
    trits += parameter.shape().size();
  }
  if (trits > 0) {
    result.zero_fraction = static_cast<double>(zeros) / static_cast<double>(trits);
    result.flips_per_step =
        static_cast<double>(flips()) / static_cast<double>(std::max<std::int64_t>(1, result.steps));
  }
  result.weights_sha256 = weights_sha256(model_->parameters());
  result.optimizer_sha256 = planes_sha256(optimizer_planes());
}

RunResult describe_run(const Dataset& dataset, const TrainSpec& spec, const Recipe& recipe,
                       const Model& model) {
  RunResult result;
  result.metric = metric_of(dataset);
  result.data = dataset.name;
  result.model = spec.model;
  result.recipe = recipe.name;
  result.overrides = spec.overrides;
  result.compute = compute_name(recipe.compute);
  result.lr = recipe.group(Role::kWeight).update.lr;
  result.seed = spec.seed;
  result.epochs = spec.epochs;
  result.batch = spec.batch;
  result.resize = spec.resize;
  result.augment = spec.augment;
  result.label_smoothing = spec.label_smoothing.value_or(0.0);
  result.imbalance = to_text(spec.imbalance);
  result.pixels = to_text(spec.pixel_scale());
  result.parameters = model.parameters().parameter_count();
  if (dataset.schema) result.table = dataset_line(dataset, spec);
  result.remarks = dataset.remarks.warnings;
  result.remarks.insert(result.remarks.end(), dataset.remarks.notes.begin(),
                        dataset.remarks.notes.end());
  return result;
}

}  // namespace tritgrad
