#include "tools/compare/run_cache.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/files/atomic_file.h"
#include "engine/files/hash.h"
#include "engine/kernels/kernels.h"
#include "models/recipes/recipe.h"
#include "models/training/trajectory.h"
#include "ops/products/dense_convolution.h"
#include "ops/products/dense_product.h"

namespace tritgrad {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int kEntryVersion = 2;

std::string hash_of(const std::string& text) { return hex(xxh3(std::as_bytes(std::span(text)))); }

// Loads the recipe without the overrides that change nothing, such as a default written out.
Recipe load_without_idle_overrides(const TrainSpec& spec) {
  Recipe recipe = load_recipe(spec.recipe, spec.overrides);
  std::vector<std::string> overrides = spec.overrides;
  for (std::size_t i = overrides.size(); i-- > 0;) {
    std::vector<std::string> fewer = overrides;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    try {
      Recipe simpler = load_recipe(spec.recipe, fewer);
      if (!same_settings(simpler, recipe)) continue;
      recipe = std::move(simpler);
      overrides = std::move(fewer);
    } catch (const Error&) {  // the other overrides are only valid together with this one
      continue;
    }
  }
  return recipe;
}

// Whether there are convolutions in floats. Other runs do not depend on who computes them.
bool convolves_floats(const TrainSpec& spec, const Recipe& recipe) {
  const bool in_integers = recipe.compute == Compute::kInt8 &&
                           recipe.group(Role::kWeight).format.traits().holds_trits &&
                           recipe.named_groups.empty();
  return spec.model.starts_with("conv:") && !in_integers;
}

}  // namespace

std::string run_key(const Dataset& dataset, const std::string& data_hash, const TrainSpec& spec,
                    RunPurpose purpose) {
  OrderedJson key;
  key["purpose"] = purpose == RunPurpose::kTuning ? "tuning" : "test";
  key["data"] = data_hash;
  key["name"] = dataset.name;
  key["published_test_rows"] = dataset.published_test_rows;
  key["image"] = {dataset.image.height, dataset.image.width, dataset.image.channels};
  const Recipe recipe = load_without_idle_overrides(spec);
  key["recipe"] = {recipe.name, recipe.toml};
  for (const auto& [field, text] : field_texts(spec)) {
    if ((field.traits & (kOfData | kOfRecipe)) == 0) key[field.key] = text;
  }
  key["tritgrad"] = TRITGRAD_VERSION;
  key["trajectory"] = {kTrajectory.integer, kTrajectory.flash};
  key["kernels"] = kernels().name;
  key["float_products"] = dense_product_library();
  if (convolves_floats(spec, recipe)) key["float_convolutions"] = dense_convolution_library();
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
  try {
    replace_file(path_of(key), std::as_bytes(std::span(text)));
  } catch (const FileIsBusy&) {  // one key, one result: the other writer keeps it
  }
}

}  // namespace tritgrad
