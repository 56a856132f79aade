#include "tools/training_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/diverged.h"
#include "engine/files/hash.h"

namespace tritgrad {
namespace {

Json to_json(const EpochPoint& point) {
  return {point.epoch, point.train_loss, point.train_accuracy,
          point.val_accuracy ? Json(*point.val_accuracy) : Json(nullptr)};
}

// JSON has no NaN, which it writes as null.
double number_from(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

EpochPoint point_from(const Json& json) {
  EpochPoint point{json.at(0).get<double>(), number_from(json.at(1)), number_from(json.at(2)), {}};
  if (!json.at(3).is_null()) point.val_accuracy = json.at(3).get<double>();
  return point;
}

// How far a run was.
struct Position {
  std::int64_t step, skipped_updates;
  Loader::Cursor cursor;
  EpochSums sums;
  std::int64_t total_flips;
  std::vector<EpochPoint> curve;
};

// Throws Error where its parts contradict each other.
Position position_of(const SavedRun& saved, std::int64_t steps_per_epoch) {
  const auto sums = saved.field<std::vector<double>>("sums");
  const auto cursor = saved.field<std::vector<std::int64_t>>("cursor");
  check(sums.size() == 5 && cursor.size() == 2, "checkpoint '", saved.path(),
        "': metadata field 'sums' or 'cursor' has the wrong length");
  const bool counts = std::all_of(sums.begin() + 1, sums.end(),
                                  [](double count) { return count >= 0.0 && count <= 0x1p53; });
  check(counts, "checkpoint '", saved.path(), "': metadata field 'sums' has a count below 0");
  Position position;
  position.step = saved.field<std::int64_t>("step");
  // Absent from checkpoints that are older than the count.
  position.skipped_updates =
      saved.has("skipped_updates") ? saved.field<std::int64_t>("skipped_updates") : 0;
  position.cursor = {cursor[0], cursor[1]};
  check(position.step >= 0 && position.cursor.epoch == position.step / steps_per_epoch &&
            position.cursor.position == position.step % steps_per_epoch,
        "checkpoint '", saved.path(), "': step ", position.step, " is not batch ", cursor[1],
        " of epoch ", cursor[0], ", where its data stand, as an epoch has ", steps_per_epoch,
        "; the file is damaged");
  position.sums = {sums[0], static_cast<std::int64_t>(sums[1]), static_cast<std::int64_t>(sums[2]),
                   static_cast<std::int64_t>(sums[3])};
  position.total_flips = static_cast<std::int64_t>(sums[4]);
  const auto curve = saved.field<Json>("curve");
  try {
    for (const Json& point : curve) position.curve.push_back(point_from(point));
  } catch (const Json::exception&) {
    fail("checkpoint '", saved.path(), "': metadata field 'curve' has an epoch without numbers");
  }
  return position;
}

bool same_method(const ParallelSpec& a, const ParallelSpec& b) {
  return a.method == b.method && a.majority == b.majority && a.warmup == b.warmup &&
         a.squeeze == b.squeeze;
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

// Each rank reads a file of its own.
void check_same_checkpoint(Communicator& ranks, const SavedRun& saved,
                           const std::vector<NamedPlane>& planes) {
  check_agreement(ranks, "step in its checkpoint (--resume)",
                  std::to_string(saved.field<std::int64_t>("step")));
  std::string state = saved.json().dump();
  for (const NamedPlane& plane : planes) state += hex(xxh3(plane.bytes, plane.order));
  check_agreement(ranks, "checkpoint (--resume)", state);
}

std::vector<NamedPlane> named(const std::vector<StatePlane>& state) {
  std::vector<NamedPlane> planes;
  for (const StatePlane& plane : state) {
    const auto count = static_cast<std::int64_t>(plane.bytes.size() / dtype_bytes(plane.dtype));
    planes.push_back({plane.name, plane.dtype, {count}, plane.bytes, plane.order});
  }
  return planes;
}

void append(std::vector<NamedPlane>& planes, const std::vector<NamedPlane>& more) {
  planes.insert(planes.end(), more.begin(), more.end());
}

}  // namespace

TrainingState::TrainingState(Model& model, Optimizer& optimizer, Loader& loader,
                             const Standardizer& standardizer, const Dataset& dataset,
                             const TrainOptions& options, const Recipe& recipe,
                             DataParallel* parallel)
    : model_(&model),
      optimizer_(&optimizer),
      loader_(&loader),
      dataset_(&dataset),
      options_(options),
      recipe_(recipe),
      parallel_(parallel),
      means_(standardizer.means()),
      inverse_stds_(standardizer.inverse_stds()) {}

void TrainingState::end_epoch(std::optional<double> val_accuracy) {
  // NaN when all steps were left out.
  const double rows = static_cast<double>(sums_.rows);
  curve_.push_back({static_cast<double>(curve_.size() + 1), sums_.loss / rows,
                    static_cast<double>(sums_.correct) / rows, val_accuracy});
  total_flips_ += sums_.flips;
  sums_ = {};
}

std::vector<NamedPlane> TrainingState::optimizer_planes() { return named(optimizer_->state()); }

std::vector<NamedPlane> TrainingState::planes() {
  std::vector<NamedPlane> planes = parameter_planes(model_->parameters());
  append(planes, optimizer_planes());
  if (parallel_ != nullptr) append(planes, named(parallel_->state()));
  add_standardizer_planes(means_, inverse_stds_, planes);
  return planes;
}

Metadata TrainingState::metadata() {
  Json run;
  run["data"] = options_.data;
  run["model"] = options_.model;
  run["recipe"] = options_.recipe;
  run["overrides"] = options_.overrides;
  run["epochs"] = options_.epochs;
  run["batch"] = options_.batch;
  run["micro_batches"] = options_.micro_batches;
  run["seed"] = options_.seed;
  run["validation"] = options_.validation;
  run["augment"] = options_.augment;
  run["label_smoothing"] = options_.label_smoothing.value_or(0.0);
  run["pixels"] = to_text(options_.pixel_scale());
  if (parallel_ != nullptr) run["parallel"] = to_json(options_.parallel, parallel_->ranks().size());
  run["inputs"] = dataset_->features;
  run["outputs"] = dataset_->class_names.size();
  if (const ImageShape& image = dataset_->image; dataset_->is_image()) {
    run["image"] = {image.height, image.width, image.channels};
  }
  run["class_names"] = dataset_->class_names;
  run["feature_names"] = dataset_->feature_names;
  run["label"] = options_.label;
  run["header"] = options_.header;
  if (data_xxh3_.empty()) data_xxh3_ = data_xxh3(*dataset_);
  run["data_xxh3"] = data_xxh3_;
  run["step"] = optimizer_->steps_done();
  run["cursor"] = {loader_->cursor().epoch, loader_->cursor().position};
  run["sums"] = {sums_.loss, sums_.correct, sums_.rows, sums_.flips, total_flips_};
  run["skipped_updates"] = optimizer_->skipped_updates();
  run["curve"] = Json::array();
  for (const EpochPoint& point : curve_) run["curve"].push_back(to_json(point));
  return {{"tritgrad.format", kCheckpointFormat},
          {"tritgrad.version", TRITGRAD_VERSION},
          {"tritgrad.run", run.dump()},
          {"tritgrad.recipe", recipe_.toml}};
}

void TrainingState::save(const std::string& path) {
  check_finite(model_->parameters());
  if (parallel_ != nullptr) {
    check_agreement(parallel_->ranks(), "set of weights", weights_sha256(model_->parameters()));
    parallel_->gather_state();
  }
  if (parallel_ == nullptr || parallel_->ranks().rank() == 0) {
    save_checkpoint(path, metadata(), planes());
  }
  if (parallel_ != nullptr) parallel_->forget_state();
}

void TrainingState::load(const SavedRun& saved) {
  check(saved.field<std::int64_t>("inputs") == dataset_->features &&
            saved.field<std::size_t>("outputs") == dataset_->class_names.size(),
        "checkpoint '", saved.path(), "': it was trained on '", saved.field<std::string>("data"),
        "', which has other features or classes than '", dataset_->name, "'");
  saved.check_image(*dataset_);
  saved.check_same_data(*dataset_, "a resumed run needs the same rows, labels and classes");
  const TrainOptions before = saved.options();
  check(before.model == options_.model && before.recipe == options_.recipe &&
            before.overrides == options_.overrides && before.batch == options_.batch &&
            before.micro_batches == options_.micro_batches && before.seed == options_.seed &&
            before.validation == options_.validation && before.augment == options_.augment &&
            before.label_smoothing == options_.label_smoothing.value_or(0.0) &&
            before.pixels == options_.pixel_scale() &&
            same_method(before.parallel, options_.parallel),
        "checkpoint '", saved.path(),
        "': it was written with another model, recipe, batch, seed, validation share, "
        "augmentation, label smoothing, scale of pixels or way to work in parallel; resume with "
        "the same");
  const std::int64_t steps_per_epoch = loader_->batches_per_epoch();
  Position position = position_of(saved, steps_per_epoch);
  check(position.step <= options_.epochs * steps_per_epoch, "--epochs ", options_.epochs,
        ": the checkpoint '", saved.path(), "' has ", position.step, " steps already, ",
        steps_per_epoch, " an epoch; give ",
        (position.step + steps_per_epoch - 1) / steps_per_epoch, " or more");

  const int saved_ranks = parallel_ == nullptr ? 1 : saved.ranks();
  if (parallel_ != nullptr) parallel_->allocate_state(saved_ranks);
  const std::vector<NamedPlane> loaded = planes();
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
  const auto per_parameter = [&](std::int64_t n) {
    return static_cast<double>(n) / static_cast<double>(result.parameters);
  };
  result.bytes_per_parameter = {per_parameter(bytes.weights), per_parameter(bytes.scales),
                                per_parameter(bytes.residual), per_parameter(bytes.moments),
                                per_parameter(bytes.gradients)};
  result.peak_live_bytes = ledger::peak_total();
  result.steps = optimizer_->steps_done();
  result.curve = curve_;
  if (!curve_.empty()) {
    result.train_loss = curve_.back().train_loss;
    result.val_accuracy = curve_.back().val_accuracy;
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

RunResult describe_run(const Dataset& dataset, const TrainOptions& options, const Recipe& recipe,
                       const Model& model) {
  RunResult result;
  result.data = dataset.name;
  result.model = options.model;
  result.recipe = recipe.name;
  result.overrides = options.overrides;
  result.compute = compute_name(recipe.compute);
  result.lr = recipe.group(Role::kWeight).update.lr;
  result.seed = options.seed;
  result.epochs = options.epochs;
  result.batch = options.batch;
  result.augment = options.augment;
  result.label_smoothing = options.label_smoothing.value_or(0.0);
  result.pixels = to_text(options.pixel_scale());
  result.parameters = model.parameters().parameter_count();
  return result;
}

}  // namespace tritgrad
