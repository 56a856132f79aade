#include "tools/compare/run_cache.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/diverged.h"
#include "engine/files/atomic_file.h"
#include "engine/files/hash.h"
#include "engine/kernels/kernels.h"
#include "models/recipes/recipe.h"
#include "ops/products/dense_product.h"
#include "tools/compare/recipe_key.h"

namespace tritgrad {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int kEntryVersion = 2;
constexpr std::int64_t kFingerprintSteps = 3;
constexpr std::size_t kFingerprintRows = 256;
// Trits for a step of normalised size: enough to move some in every small network.
constexpr double kFingerprintRate = 0.5;

// The recipe such that its first steps, of so many, show what it does: a third, two thirds and all
// of a rate at which trits flip. (ECO's forms differ where rates change.)
Recipe in_haste(Recipe recipe, double steps) {
  const auto hurry = [&](Recipe::Group& group) {
    GroupSpec& update = group.update;
    const double rate = group.format.traits().holds_trits ? kFingerprintRate : update.lr;
    update.schedule = {.warmup = 1.0};
    update.lr = rate * steps / static_cast<double>(kFingerprintSteps);
  };
  for (Recipe::Group& group : recipe.groups) hurry(group);
  for (Recipe::NamedGroup& named : recipe.named_groups) hurry(named.group);
  return recipe;
}

// What these options make of the first steps, of a test, of the bytes and of the peak of memory: a
// cached result of older code is then not taken for one of today's.
OrderedJson fingerprint(const Dataset& dataset, TrainOptions options, const Recipe& recipe) {
  Split split = split_of(dataset, options, 0);
  split.val.clear();
  // Training rows stand in for those of the test, which this run must not look at.
  split.test.clear();
  const std::size_t stride = std::max<std::size_t>(1, split.train.size() / kFingerprintRows);
  for (std::size_t i = 0; i < split.train.size(); i += stride) {
    split.test.push_back(split.train[i]);
  }
  options.stop_after = kFingerprintSteps;
  options.observer = nullptr;
  try {
    const double steps =
        std::ceil(static_cast<double>(split.train.size()) / static_cast<double>(options.batch)) *
        options.epochs;
    const RunResult run = train(dataset, split, options, in_haste(recipe, steps));
    return {{"weights", run.weights_sha256},
            {"optimizer", run.optimizer_sha256},
            {"accuracy", *run.test_accuracy},
            {"bytes_per_parameter", run.bytes_per_parameter.total()},
            {"peak_live_bytes", run.peak_live_bytes}};
  } catch (const Diverged&) {
    return "diverged";
  }
}

std::string hash_of(const std::string& text) { return hex(xxh3(std::as_bytes(std::span(text)))); }

}  // namespace

std::string run_key(const Dataset& dataset, const std::string& data_hash,
                    const TrainOptions& options, RunPurpose purpose) {
  // Whoever adds an option decides here whether it belongs into the key: without it this does not
  // compile. The label and the header have made the data what they are.
  const auto& [data, label, header, model, recipe, overrides, epochs, batch, micro_batches, seed,
               folds, validation, augment, label_smoothing, pixels, save, save_every, resume, log,
               stop_after, quiet, cache, parallel, ranks, observer] = options;
  OrderedJson key;
  key["purpose"] = purpose == RunPurpose::kTuning ? "tuning" : "test";
  key["data"] = data_hash;
  key["name"] = dataset.name;
  key["published_test_rows"] = dataset.published_test_rows;
  key["image"] = {dataset.image.height, dataset.image.width, dataset.image.channels};
  key["folds"] = folds;
  key["validation"] = validation;
  const Recipe resolved = load_recipe(recipe, overrides);
  key["recipe"] = recipe_key(resolved);
  key["model"] = model;
  key["epochs"] = epochs;
  key["batch"] = batch;
  key["micro_batches"] = micro_batches;
  key["augment"] = augment;
  if (label_smoothing.value_or(0.0) > 0.0) key["label_smoothing"] = *label_smoothing;
  if (pixels == PixelScale::kSquareRoot) key["pixels"] = to_text(*pixels);
  key["seed"] = seed;
  key["tritgrad"] = TRITGRAD_VERSION;
  key["kernels"] = kernels().name;
  key["float_products"] = dense_product_library();
  key["fingerprint"] = fingerprint(dataset, options, resolved);
  return key.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

RunCache::RunCache(std::filesystem::path folder, bool fresh)
    : folder_(std::move(folder)), fresh_(fresh) {}

std::filesystem::path RunCache::path_of(const std::string& key) const {
  return folder_ / (sha256_hex(std::as_bytes(std::span(key))) + ".json");
}

std::optional<RunResult> RunCache::find(const std::string& key) const {
  if (folder_.empty() || fresh_) return std::nullopt;
  const std::filesystem::path path = path_of(key);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const OrderedJson entry = OrderedJson::parse(text, nullptr, false);
  if (!entry.is_object() || entry.value("tritgrad.run", OrderedJson()) != kEntryVersion ||
      entry.value("key", OrderedJson()) != key || !entry.contains("result")) {
    return std::nullopt;
  }
  const std::string result = entry.at("result").dump();
  if (entry.value("xxh3", OrderedJson()) != hash_of(result)) return std::nullopt;
  try {
    RunResult run = run_from_json(result);
    run.cached = true;
    return run;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void RunCache::store(const std::string& key, const RunResult& run) const {
  if (folder_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  check(!error, "the folder '", folder_.string(), "' cannot be made (", error.message(), ")");
  const OrderedJson result = OrderedJson::parse(to_json(run));
  const std::string text = OrderedJson{{"tritgrad.run", kEntryVersion},
                                       {"key", key},
                                       {"result", result},
                                       {"xxh3", hash_of(result.dump())}}
                               .dump() +
                           "\n";
  replace_file(path_of(key), std::as_bytes(std::span(text)));
}

}  // namespace tritgrad
