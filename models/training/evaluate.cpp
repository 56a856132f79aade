#include "models/training/evaluate.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/check.h"
#include "engine/data/label_encoder.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

ScoreSums score_sums_of_rows(Model& model, Tape& tape, const Task& task,
                             std::span<const std::int32_t> rows, Confusion* confusion) {
  ScoreSums sums;
  if (rows.empty()) return sums;
  Loader loader = task.test_batches(rows);
  tape.set_recording(false);
  for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
    const Batch batch = loader.next();
    const Tensor outputs = model.forward(tape, batch.x, {}).value;
    sums += task.score_sums(outputs, batch);
    if (confusion != nullptr) confusion->add(outputs, batch.labels);
    tape.reset();
  }
  tape.set_recording(true);
  return sums;
}

// Adds the tables of all ranks, which are of the same classes.
void add_of_all_ranks(Confusion& sum, const Confusion& own, Communicator& ranks) {
  std::vector<Confusion> all(static_cast<std::size_t>(ranks.size()), own);
  for (std::size_t actual = 0; actual < own.counts.size(); ++actual) {
    std::vector<std::span<std::byte>> places;
    for (Confusion& each : all) {
      places.push_back(std::as_writable_bytes(std::span(each.counts[actual])));
    }
    ranks.all_gather(std::as_bytes(std::span(own.counts[actual])), places);
  }
  for (const Confusion& each : all) sum.add(each);
}

RowNumbers rows_of(const Dataset& dataset) {
  RowNumbers rows(static_cast<std::size_t>(dataset.rows));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// Labels become numbers of the model's classes, some of which the data may lack.
void renumber_labels(Dataset& dataset, const std::vector<std::string>& classes,
                     const std::string& path) {
  const ClassFinder finder(classes);
  std::vector<std::int32_t> number;
  for (const std::string& name : dataset.class_names) {
    const std::optional<std::int32_t> found = finder.find(name);
    const auto first = std::find(dataset.labels.begin(), dataset.labels.end(), std::ssize(number));
    // A class that no row has need not be known.
    if (!found && first != dataset.labels.end()) {
      fail("checkpoint '", path, "': its model has no class \"", printable(name), "\", which ",
           dataset.place(first - dataset.labels.begin()), " of '", dataset.name, "' has",
           did_you_mean(name, classes), "; give data of the model's classes");
    }
    number.push_back(found.value_or(-1));
  }
  for (std::int32_t& label : dataset.labels) label = number[static_cast<std::size_t>(label)];
  dataset.class_names = classes;
}

}  // namespace

std::optional<Scores> evaluate(Model& model, Tape& tape, const Task& task,
                               std::span<const std::int32_t> rows, Communicator* ranks,
                               Confusion* confusion) {
  if (rows.empty()) return std::nullopt;
  check(tape.node_count() == 0, "evaluate: the tape holds ", tape.node_count(),
        " steps; call reset() first");
  if (ranks == nullptr) {
    return task.scores(score_sums_of_rows(model, tape, task, rows, confusion), rows);
  }
  const auto place = [&](int rank) {
    return rows.begin() + rank * std::ssize(rows) / ranks->size();
  };
  const std::span<const std::int32_t> own(place(ranks->rank()), place(ranks->rank() + 1));
  std::optional<Confusion> own_confusion;
  if (confusion != nullptr) own_confusion.emplace(confusion->classes);
  const ScoreSums own_sums =
      score_sums_of_rows(model, tape, task, own, own_confusion ? &*own_confusion : nullptr);
  ScoreSums all;
  for (const ScoreSums& theirs : gather_values(*ranks, own_sums)) all += theirs;
  if (own_confusion) add_of_all_ranks(*confusion, *own_confusion, *ranks);
  return task.scores(all, rows);
}

namespace {

void check_target_scale(const TargetScale& scale, const SavedRun& saved) {
  check(std::isfinite(scale.mean) && std::isfinite(scale.deviation) && scale.deviation > 0.0,
        "checkpoint '", saved.path(), "': its scale of targets, ", scale.mean, " and ",
        scale.deviation, ", is no mean and deviation; the file is damaged");
}

// Images have one mean and one scale for all pixels, and tokens one of each that change nothing.
// Old checkpoints do not know whether their inputs are images; data do.
LoadedModel load_model_of(const SavedRun& saved, bool has_one_scale) {
  SavedModel plan = saved.model();
  const bool regression = saved.is_regression();
  check(regression || saved.is_language_model() || plan.outputs == std::ssize(saved.class_names()),
        "checkpoint '", saved.path(), "': its model has ", plan.outputs, " outputs but it names ",
        saved.class_names().size(), " classes; the file is damaged");
  auto model = make_model(plan.model, plan.input, plan.outputs, plan.recipe, std::nullopt);
  std::vector<float> means(has_one_scale ? 1 : static_cast<std::size_t>(plan.input.features));
  std::vector<float> inverse_stds(means.size());
  std::vector<NamedArray> planes = parameter_planes(model->parameters());
  add_standardizer_planes(means, inverse_stds, planes);
  TargetScale target_scale;
  if (regression) add_target_planes(target_scale, planes);
  saved.load_part(planes);
  check_target_scale(target_scale, saved);
  return {std::move(plan),
          std::move(model),
          {std::move(means), std::move(inverse_stds), saved.spec().pixel_scale()},
          regression,
          target_scale};
}

}  // namespace

LoadedModel load_model(const SavedRun& saved) {
  return load_model_of(saved, saved.model().input.image.size() > 0 || saved.is_language_model());
}

LoadedModel load_model(const SavedRun& saved, Dataset& dataset) {
  const SavedModel plan = saved.model();
  saved.check_task(dataset);
  check(plan.input.features == dataset.features, "checkpoint '", saved.path(), "': its model has ",
        counted(plan.input.features, "input"), " but '", dataset.name, "' has ",
        counted(dataset.features, "feature"), "; give data with the columns of its training");
  saved.check_image(dataset);
  if (!saved.is_regression()) renumber_labels(dataset, saved.class_names(), saved.path());
  saved.check_feature_order(dataset);
  return load_model_of(saved, dataset.is_image() || dataset.is_text());
}

ScoredRows scored_rows(const SavedRun& saved, const Dataset& dataset) {
  const bool same = saved.data_hash() == data_xxh3(dataset);
  const bool all = (dataset.published_test_rows == 0 && !same) || (same && saved.spec().all_rows);
  return {all ? rows_of(dataset) : fixed_split(dataset).test, all};
}

Evaluation evaluate_checkpoint(const SavedRun& saved, Dataset& dataset) {
  const LoadedModel loaded = load_model(saved, dataset);
  const auto [rows, all_rows] = scored_rows(saved, dataset);
  const auto task = make_task(dataset, loaded.standardizer, loaded.target_scale);
  Tape tape;
  std::optional<Confusion> confusion;
  if (has_uneven_classes(dataset)) confusion.emplace(dataset.class_names);
  const Scores scores =
      *evaluate(*loaded.model, tape, *task, rows, nullptr, confusion ? &*confusion : nullptr);
  return {saved.path(),       dataset.name, loaded.plan.recipe.name,
          metric_of(dataset), scores,       std::ssize(rows),
          saved.step(),       all_rows,     std::move(confusion),
          dataset.remarks};
}

std::string to_json(const Evaluation& evaluation) {
  nlohmann::ordered_json json{{"checkpoint", evaluation.checkpoint},
                              {"data", evaluation.data},
                              {score_key("test", evaluation.metric), evaluation.scores.score},
                              {"rows", evaluation.rows},
                              {"tested", evaluation.all_rows ? "all rows" : "test rows"},
                              {"steps", evaluation.steps}};
  if (evaluation.metric == Metric::kRmse) {
    json["test_mae"] = evaluation.scores.mae.value();
    const std::optional<double> r2 = evaluation.scores.r2;
    json["test_r2"] = r2 ? nlohmann::ordered_json(*r2) : nullptr;
  }
  if (const auto& nats = evaluation.scores.nats) {
    json["test_nats_per_token"] = *nats;
    json["test_perplexity"] = std::exp(*nats);
  }
  if (const auto& confusion = evaluation.confusion) {
    json["balanced_accuracy"] = confusion->balanced_accuracy();
    json["confusion"] = {{"classes", confusion->classes}, {"counts", confusion->counts}};
  }
  for (const auto* sentences : {&evaluation.remarks.warnings, &evaluation.remarks.notes}) {
    for (const std::string& sentence : *sentences) json["remarks"].push_back(sentence);
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tritgrad
