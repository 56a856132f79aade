// A network as a C header, compiled and run beside the model that it was written from.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>

#include "engine/data/open_dataset.h"
#include "models/export/c_header.h"
#include "models/export/self_check.h"
#include "models/training/train.h"
#include "tests/support/c_compiler.h"
#include "tests/support/support.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_c_header {
namespace {

// A network, rows of inputs as its header takes them, and the logits of our own inference.
struct Exported {
  InferenceNetwork network;
  std::vector<float> inputs;  // [rows x inputs]
  std::vector<float> logits;  // [rows x classes]

  std::int64_t rows() const { return std::ssize(inputs) / network.inputs; }
};

// The logits of these rows as evaluation computes them.
std::vector<float> logits_of(const LoadedModel& loaded, const Dataset& dataset,
                             const std::vector<std::int32_t>& rows) {
  const Classification task(dataset, loaded.standardizer);
  Loader loader = task.test_batches(rows);
  Tape tape;
  tape.set_recording(false);
  std::vector<float> all;
  for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
    const Tensor logits = loaded.model->forward(tape, loader.next().x, {}).value;
    all.insert(all.end(), logits.values().begin(), logits.values().end());
    tape.reset();
  }
  return all;
}

Exported exported(InferenceNetwork network, const LoadedModel& loaded, const Dataset& dataset,
                  const std::vector<std::int32_t>& rows) {
  const SelfCheck result = check_network(network, loaded, dataset, rows);
  CAPTURE(result.largest_difference);
  CHECK(result.passed());
  CHECK(result.rows == std::ssize(rows));
  std::vector<float> inputs(rows.size() * static_cast<std::size_t>(dataset.features));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    dataset.gather(rows[i], inputs.data() + i * static_cast<std::size_t>(dataset.features));
  }
  return {std::move(network), std::move(inputs), logits_of(loaded, dataset, rows)};
}

// Writes the headers m0.h, m1.h, ... and one program that runs them all, on rows from standard
// input.
std::string write_program(const TempDir& folder, const std::vector<Exported>& all) {
  std::string text = "#include <stdio.h>\n";
  std::string body;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string name = concat("m", i), capitals = concat("M", i);
    folder.write(name + ".h", c_header(all[i].network, {name, {"a test */ of /* comments ?\?/"}},
                                       {i % 2 == 0 ? TritPacking::kBase3 : TritPacking::kTwoBits}));
    text += concat("#include \"", name, ".h\"\nstatic ", name, "_workspace w", i, ";\n");
    body += concat("  {\n    float x[", capitals, "_INPUTS], y[", capitals, "_CLASSES];\n");
    if (!all[i].network.offsets.empty())
      body += concat("    double wide[", capitals, "_INPUTS];\n");
    const bool wide = !all[i].network.offsets.empty();
    body += concat("    int r, j, best;\n    for (r = 0; r < ", all[i].rows(),
                   "; r++) {\n      if (fread(x, sizeof x, 1, stdin) != 1) return 1;\n");
    if (wide) {
      body += concat("      for (j = 0; j < ", capitals, "_INPUTS; j++) wide[j] = (double)x[j] + ",
                     name, "_offset[j];\n");
    }
    const char* x = wide ? "wide" : "x";
    body +=
        concat("      ", name, "_logits(", x, ", y, &w", i, ");\n      best = ", name, "_predict(",
               x, ", &w", i, ");\n      fwrite(y, sizeof y, 1, stdout);\n      for (j = 0; j < ",
               capitals, "_CLASSES; j++) {\n        if (y[j] > y[best] || ", name,
               "_class_name(j) == 0) return 2;\n      }\n    }\n  }\n");
  }
  return folder.write("main.c", text + "int main(void) {\n" + body + "  return 0;\n}\n");
}

void compare_logits(const Exported& e, const char* bytes) {
  const std::size_t classes = e.network.class_names.size();
  std::int64_t differing = 0;
  for (std::size_t first = 0; first < e.logits.size(); first += classes) {
    double largest = 0.0, difference = 0.0;
    bool same = true;
    for (std::size_t i = first; i < first + classes; ++i) {
      float found;
      std::memcpy(&found, bytes + i * sizeof(float), sizeof found);
      largest = std::max(largest, std::abs(static_cast<double>(e.logits[i])));
      difference = std::max(
          difference, std::abs(static_cast<double>(found) - static_cast<double>(e.logits[i])));
      same = same && std::memcmp(&found, &e.logits[i], sizeof found) == 0;
    }
    const bool agree = e.network.is_exact() ? same : difference <= e.network.tolerance(largest);
    differing += agree ? 0 : 1;
  }
  CHECK(differing == 0);
}

// Compiles the headers of all networks in every way and compares what they compute.
void compile_and_compare(const std::vector<Exported>& all) {
  const TempDir folder;
  const std::string source = write_program(folder, all);
  std::string input;
  for (const Exported& e : all) {
    input.append(reinterpret_cast<const char*>(e.inputs.data()), e.inputs.size() * sizeof(float));
  }
  const std::string rows = folder.write("rows", input);
  const std::string program = folder / "program", output = folder / "logits";
  const std::vector<std::string> commands = compile_commands(source, program);
  REQUIRE(!commands.empty());
  for (const std::string& command : commands) {
    CAPTURE(command);
    REQUIRE(std::system(command.c_str()) == 0);
    const std::string run = "'" + program + "' <'" + rows + "' >'" + output + "'";
    REQUIRE(std::system(run.c_str()) == 0);
    const std::string logits = read_text(output);
    std::size_t place = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      CAPTURE(i);
      REQUIRE(logits.size() >= place + all[i].logits.size() * sizeof(float));
      compare_logits(all[i], logits.data() + place);
      place += all[i].logits.size() * sizeof(float);
    }
    CHECK(place == logits.size());
  }
}

// Whole numbers of [low, high] that depend on `salt` alone.
std::int64_t whole_number(std::int64_t low, std::int64_t high, std::uint32_t salt) {
  return low + static_cast<std::int64_t>(
                   random_below({5, 77, 0}, salt, static_cast<std::uint32_t>(high - low + 1)));
}

Dataset random_data(std::int64_t rows, std::int64_t features, std::size_t classes) {
  Dataset data;
  data.name = "random";
  data.allocate(rows, features, Element::kFloat32);
  const std::vector<float> values = numbers(rows * features, 3);
  std::copy(values.begin(), values.end(), data.values.as<float>());
  for (std::size_t i = 0; i < classes; ++i) data.class_names.push_back(concat("\"?\\\xC3\xA9", i));
  data.labels.assign(static_cast<std::size_t>(rows), 0);
  return data;
}

// A network of random numbers, everywhere: also in norms, statistics and scales.
Exported random_network(const std::string& spec, const std::string& recipe_name,
                        const std::vector<std::string>& overrides, std::uint32_t salt,
                        const ImageShape& image = {}) {
  CAPTURE(spec);
  CAPTURE(recipe_name);
  const auto inputs = image.size() > 0 ? image.size() : whole_number(1, 300, salt);
  Dataset data = random_data(9, inputs, static_cast<std::size_t>(2 + salt % 9));
  data.image = image;
  SavedModel plan{spec, data, data.classes(), load_recipe(recipe_name, overrides)};
  auto model = make_model(spec, plan.input, plan.outputs, plan.recipe, salt);
  for (Parameter& parameter : model->parameters()) {
    if (parameter.spec().role == Role::kWeight) continue;
    std::vector<float> values = numbers(parameter.shape().size(), parameter.stream());
    const bool positive =
        parameter.name().ends_with("var") || parameter.spec().role == Role::kScale;
    for (float& x : values) x = positive ? std::abs(x) + 0.01f : x;
    encode_all(parameter.storage(), values);
  }
  std::vector<float> means = numbers(inputs, 21), inverse_stds = numbers(inputs, 22);
  LoadedModel loaded{plan, std::move(model), {means, inverse_stds}};
  InferenceNetwork network{inputs, data.class_names, {}, {}, false, means, inverse_stds, {}};
  network.layers = describe_layers(loaded.plan, *loaded.model);
  std::vector<std::int32_t> rows(9);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int32_t>(i);
  return exported(std::move(network), loaded, data, rows);
}

// Trains on a data set and describes what was saved.
Exported trained(const std::string& data, const std::string& model, const std::string& recipe,
                 int epochs, const std::string& cache = "") {
  Dataset dataset = open_dataset(data, {{}, cache, ""});
  const TempDir folder;
  TrainOptions options;
  options.data = data;
  options.model = model;
  options.recipe = recipe;
  options.epochs = epochs;
  options.save = folder / "m.safetensors";
  train(dataset, with_defaults(options, dataset));
  const SavedRun saved(options.save);
  const LoadedModel loaded = load_model(saved, dataset);
  std::vector<std::int32_t> rows = scored_rows(saved, dataset).rows;
  rows.resize(std::min<std::size_t>(rows.size(), 1000));
  return exported(describe_network(saved, loaded), loaded, dataset, rows);
}

}  // namespace

TEST_CASE("c header: logits are those of our own inference on all test rows, bit by bit") {
  const std::vector<Exported> all{
      trained("wdbc", "mlp:64,64", "votes", 3), trained("iris", "mlp:8", "latent8", 5),
      trained("digits", "mlp:32", "latent8", 3),
      trained("digits", "mlp:48,24:norm=layer:activation=tanh:dropout=0.2", "shared8", 2),
      trained("digits", "conv:8,M,12", "latent8", 2)};
  for (const Exported& e : all) CHECK(e.network.is_exact());
  compile_and_compare(all);
}

TEST_CASE("c header: MNIST, where it is in the cache of fetched sets") {
  const char* home = std::getenv("HOME");
  const std::filesystem::path cache =
      std::filesystem::path(home == nullptr ? "" : home) / ".cache/tritgrad/mnist";
  if (!std::filesystem::exists(cache)) return;
  const std::vector<Exported> all{trained("mnist", "mlp:32", "latent8", 1, cache.parent_path())};
  CHECK(all[0].network.square_roots);
  compile_and_compare(all);
}

TEST_CASE("c header: random networks of all widths, norms, activations and groups of scales") {
  std::vector<Exported> all;
  const char* norms[] = {"batch", "layer", "rms", "none"};
  const char* activations[] = {"relu", "squared_relu", "tanh"};
  const char* groups[] = {"\"row\"", "32", "64", "128"};
  const char* recipes[] = {"latent8", "votes", "shared4", "eco", "latent5"};
  for (std::uint32_t i = 0; i < 12; ++i) {
    const std::string spec =
        concat("mlp:", whole_number(1, 300, 100 + i), ",", whole_number(1, 300, 200 + i),
               ":norm=", norms[i % 4], ":activation=", activations[i % 3]);
    all.push_back(
        random_network(spec, recipes[i % 5], {concat("weight.group=", groups[i / 3])}, i));
    CHECK(all.back().network.is_exact());
  }
  all.push_back(random_network("conv:5,M,7,9,M", "votes", {}, 18, {11, 6, 3}));
  all.push_back(random_network("conv:M,16", "latent8", {"weight.group=32"}, 19, {5, 7, 4}));
  all.push_back(random_network("mlp:", "trits", {}, 20));
  all.back().network.offsets.assign(static_cast<std::size_t>(all.back().network.inputs), 1e9);
  // What can be told apart beside the offset, 2^-20 and more, goes through.
  for (float& x : all.back().inputs) x = 0.0f;
  all.back().logits.clear();
  const std::vector<float> zeros(static_cast<std::size_t>(all.back().network.inputs), 0.0f);
  for (std::int64_t row = 0; row < all.back().rows(); ++row) {
    const std::vector<float> logits = infer(all.back().network, zeros);
    all.back().logits.insert(all.back().logits.end(), logits.begin(), logits.end());
  }
  compile_and_compare(all);
}

TEST_CASE("c header: sums in floats agree within the tolerance") {
  std::vector<Exported> all;
  all.push_back(random_network("mlp:40,30", "fp32", {}, 1));
  all.push_back(random_network("mlp:40:norm=layer:activation=tanh", "master", {}, 2));
  all.push_back(random_network("mlp:70:norm=rms", "latent8", {"compute=\"fp32\""}, 3));
  all.push_back(random_network("mlp:33:norm=none", "flash-adamw", {}, 4));
  all.push_back(random_network("conv:6,M,8", "fp32", {}, 5, {6, 5, 2}));
  all.push_back(random_network("conv:6,M,8", "latent8", {"compute=\"fp32\""}, 6, {7, 5, 2}));
  for (const Exported& e : all) CHECK(!e.network.is_exact());
  CHECK(!all[1].network.layers[0].product.trits.empty());  // gamma times trits
  compile_and_compare(all);
}

TEST_CASE("c header: the header of mlp:32 on digits is the golden one, and reads like a page") {
  const Exported digits = trained("digits", "mlp:32", "latent8", 3);
  const std::string header = c_header(digits.network, {"digits", {"mlp:32 on digits"}}, {});
  const std::filesystem::path golden =
      std::filesystem::path(TRITGRAD_SOURCE_DIR) / "tests/golden/digits.h.txt";
  if (std::getenv("TRITGRAD_WRITE_GOLDEN") != nullptr) write_text(golden, header);
  CHECK(header == read_text(golden));
  const ExportBytes bytes = c_header_bytes(digits.network, {});
  CHECK(bytes.weights == 32 * 13 + 10 * 7);
  CHECK(bytes.scales == 4 * (32 + 10));
  CHECK(c_header_bytes(digits.network, {TritPacking::kTwoBits}).weights == 32 * 16 + 10 * 8);
  // Lines that are not numbers of a table.
  std::int64_t lines = 0;
  bool in_table = false;
  for (std::size_t at = 0; at < header.size(); at = header.find('\n', at) + 1) {
    in_table = (in_table || header.compare(at, 12, "static const") == 0) &&
               header.compare(at, 2, "};") != 0 && header.compare(at, 13, "static inline") != 0;
    lines += in_table ? 0 : 1;
  }
  CHECK(lines < 250);
}

TEST_CASE("c header: a network that is not the model's fails the self-check") {
  Dataset dataset = builtin_dataset("iris");
  const TempDir folder;
  TrainOptions options;
  options.data = "iris";
  options.model = "mlp:8";
  options.recipe = "latent8";
  options.epochs = 1;
  options.save = folder / "m.safetensors";
  train(dataset, with_defaults(options, dataset));
  const SavedRun saved(options.save);
  const LoadedModel loaded = load_model(saved, dataset);
  InferenceNetwork network = describe_network(saved, loaded);
  const std::vector<std::int32_t> rows = scored_rows(saved, dataset).rows;
  CHECK(check_network(network, loaded, dataset, rows).passed());
  CHECK(!check_network(network, loaded, dataset, {}).passed());
  std::int8_t& trit = network.layers.front().product.trits.front();
  trit = static_cast<std::int8_t>(trit == 1 ? -1 : trit + 1);
  const SelfCheck result = check_network(network, loaded, dataset, rows);
  CHECK(!result.passed());
  CHECK(result.differing_rows > 0);
}

TEST_CASE("c header: names of files become C identifiers") {
  CHECK(c_identifier("digits") == "digits");
  CHECK(c_identifier("my-model.v2") == "my_model_v2");
  CHECK(c_identifier("3layers") == "model_3layers");
  CHECK(c_identifier("_x") == "model__x");
  CHECK(refusal([] { c_identifier("\xE6\xA8\xA1"); }).find("no letter or digit") !=
        std::string::npos);
}

}  // namespace tritgrad::test::test_c_header
