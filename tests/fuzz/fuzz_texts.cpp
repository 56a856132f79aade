// libFuzzer entry for what people write and checkpoints hold as text: recipes, --set, models,
// augmentations, the metadata of a run, results in a cache, what is known of a table. The first
// byte chooses. A refusal (Error) is a good result.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "engine/check.h"
#include "engine/data/augmentation.h"
#include "engine/data/table_schema.h"
#include "engine/files/checkpoint.h"
#include "models/networks/model.h"
#include "models/recipes/recipe.h"
#include "models/training/run_result.h"
#include "models/training/saved_run.h"

namespace {

using namespace tritgrad;

constexpr std::int64_t kFeatures = 64, kOutputs = 3;

void expect(bool condition) {
  if (!condition) std::abort();
}

const Recipe& votes() {
  static const Recipe recipe = load_recipe("votes");
  return recipe;
}

// What is accepted is read again as the same.
void read_recipe(const std::string& toml) {
  const Recipe recipe = parse_recipe(toml, "recipe");
  expect(parse_recipe(recipe.toml, "again").toml == recipe.toml);
}

void read_model(const std::string& spec) {
  const ModelInput image{kFeatures, ImageShape{8, 8, 1}};
  for (const ParameterSpec& parameter : plan_model(spec, image, kOutputs, votes())) {
    expect(parameter.shape.size() > 0);
  }
}

void read_run(const std::string& json) {
  std::vector<std::byte> bytes;
  write_checkpoint(
      [&](std::span<const std::byte> piece) {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
      },
      {{"tritgrad.format", "3"}, {"tritgrad.run", json}, {"tritgrad.recipe", votes().toml}}, {},
      "run");
  const SavedRun run(bytes, "run");
  run.model();
  run.table();
  expect(run.position(4).step >= 0);
}

// Texts of which one may be a part of another are written in the same way again.
void read_result(const std::string& json) {
  const std::string written = to_json(run_from_json(json));
  expect(to_json(run_from_json(written)) == written);
}

void read_text(unsigned reader, const std::string& text) {
  constexpr std::array<void (*)(const std::string&), 7> kReaders = {
      read_recipe,
      [](const std::string& set) { load_recipe("votes", {set}); },
      read_model,
      [](const std::string& augment) {
        const Augmentation read = parse_augmentation(augment);
        expect(to_text(parse_augmentation(to_text(read))) == to_text(read));
      },
      read_run,
      read_result,
      [](const std::string& json) { schema_from_json(json, "table"); }};
  kReaders[reader % kReaders.size()](text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    read_text(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const Error&) {
  }
  return 0;
}
