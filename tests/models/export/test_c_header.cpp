// A network as a C header, compiled and run beside the model that it was written from.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>
#include <string>

#include "engine/data/open_dataset.h"
#include "models/export/c_header.h"
#include "models/export/c_text.h"
#include "models/export/self_check.h"
#include "models/training/predict.h"
#include "models/training/train.h"
#include "tests/support/c_compiler.h"
#include "tests/support/random_network.h"
#include "tests/support/readers.h"
#include "tests/support/support.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_c_header {
namespace {

// A network, rows of inputs as its header takes them, and the logits of our own inference.
struct Exported {
  InferenceNetwork network;
  std::vector<float> inputs;       // [rows x inputs]
  std::vector<float> logits;       // [rows x classes]
  std::vector<double> cells = {};  // [rows x columns] of which the header makes the inputs

  std::int64_t rows() const { return std::ssize(inputs) / network.inputs; }
};

Exported exported(InferenceNetwork network, const LoadedModel& loaded, const Dataset& dataset,
                  std::span<const std::int32_t> rows) {
  const SelfCheck result = check_network(network, loaded, dataset, rows);
  CAPTURE(result.largest_difference);
  CHECK(result.passed());
  CHECK(result.rows == std::ssize(rows));
  std::vector<float> inputs(rows.size() * static_cast<std::size_t>(dataset.features));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    dataset.gather(rows[i], inputs.data() + i * static_cast<std::size_t>(dataset.features));
  }
  return {std::move(network), std::move(inputs), predict_logits(loaded, dataset, rows)};
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// Returns the lines that read a row of a network from standard input into `x`. A # is its number.
std::string reading_lines(const Exported& e) {
  if (!e.cells.empty()) {
    return R"(
      double read[M#_CELLS];
      NUMBER cells[M#_CELLS], x[M#_INPUTS];
      if (fread(read, sizeof read, 1, stdin) != 1) return 1;
      for (j = 0; j < M#_CELLS; j++) cells[j] = (NUMBER)read[j];
      m#_encode(cells, x);
)";
  }
  std::string lines = R"(
      float read[M#_INPUTS];
      NUMBER x[M#_INPUTS];
      if (fread(read, sizeof read, 1, stdin) != 1) return 1;
)";
  return lines + (e.network.offsets.empty()
                      ? "      for (j = 0; j < M#_INPUTS; j++) x[j] = read[j];\n"
                      : "      for (j = 0; j < M#_INPUTS; j++) x[j] = read[j] + m#_offset[j];\n");
}

// Writes the headers m0.h, m1.h, ... and one program that runs them all, on rows from standard
// input. It prints the names of the classes and all logits.
std::string write_program(const TempDir& folder, const std::vector<Exported>& all) {
  constexpr TritPacking kPackings[] = {TritPacking::kBase3, TritPacking::kTwoBits,
                                       TritPacking::kInt8};
  std::string text = "#include <stdio.h>\n#include <string.h>\n", body;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Exported& e = all[i];
    const std::string name = concat("m", i);
    folder.write(name + ".h", c_header(e.network, {name, {"a test */ of /* comments ?\?/"}},
                                       {kPackings[i % 3]}));
    const ExportBytes bytes = c_header_bytes(e.network, {kPackings[i % 3]});
    const std::string part = "  if (M#_WORKSPACE_BYTES != " + std::to_string(bytes.workspace) +
                             ") return 3;\n" + R"(  {
    int r, j, best;
    for (j = 0; j < M#_CLASSES; j++) {
      fwrite(m#_class_name(j), strlen(m#_class_name(j)) + 1, 1, stdout);
    }
    for (r = 0; r < )" + std::to_string(e.rows()) +
                             R"(; r++) {
      float y[M#_CLASSES];)" +
                             reading_lines(e) +
                             R"(      m#_logits(x, y, &w#);
      best = m#_predict(x, &w#);
      fwrite(y, sizeof y, 1, stdout);
      for (j = 0; j < M#_CLASSES; j++) {
        if (y[j] > y[best]) return 2;
      }
    }
  }
)";
    text += concat("#include \"", name, ".h\"\nstatic ", name, "_workspace w", i, ";\n");
    const std::string of_network = replaced(part, "#", std::to_string(i));
    body += replaced(of_network, "NUMBER", e.network.offsets.empty() ? "float" : "double");
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
    if (e.cells.empty()) {
      input.append(reinterpret_cast<const char*>(e.inputs.data()), e.inputs.size() * sizeof(float));
    } else {
      input.append(reinterpret_cast<const char*>(e.cells.data()), e.cells.size() * sizeof(double));
    }
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
      for (const std::string& name : all[i].network.class_names) {
        CHECK(logits.compare(place, name.size() + 1, name.c_str(), name.size() + 1) == 0);
        place += name.size() + 1;
      }
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

Exported random_network(const std::string& spec, const std::string& recipe_name,
                        const std::vector<std::string>& overrides, std::uint32_t salt,
                        const ImageShape& image = {}) {
  CAPTURE(spec);
  CAPTURE(recipe_name);
  const auto inputs = image.size() > 0 ? image.size() : whole_number(1, 300, salt);
  Dataset data = random_data(9, inputs, static_cast<std::size_t>(2 + salt % 9));
  data.image = image;
  const LoadedModel loaded =
      random_model({spec, data, data.classes(), load_recipe(recipe_name, overrides)}, salt);
  std::vector<std::int32_t> rows(9);
  std::iota(rows.begin(), rows.end(), 0);
  return exported(network_of(loaded, data.class_names), loaded, data, rows);
}

// Makes the logits those that the description gives.
void infer_again(Exported& e) {
  e.logits.clear();
  const auto inputs = static_cast<std::size_t>(e.network.inputs);
  for (std::size_t first = 0; first < e.inputs.size(); first += inputs) {
    const std::vector<float> logits = infer(e.network, {e.inputs.data() + first, inputs});
    e.logits.insert(e.logits.end(), logits.begin(), logits.end());
  }
}

// Trains on a data set and describes what was saved.
Exported trained(const std::string& data, const std::string& model, const std::string& recipe,
                 int epochs, const std::string& cache = "") {
  DataOptions fetched;
  fetched.cache_folder = cache;
  Dataset dataset = open_dataset(data, fetched);
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
  RowNumbers rows = scored_rows(saved, dataset).rows;
  rows.resize(std::min<std::size_t>(rows.size(), 1000));
  return exported(describe_network(saved, loaded), loaded, dataset, rows);
}

// Cells of a table as texts, empty ones missing: a number near 10^9, a number, words that C spells
// alike, words; and a class. `other` has words that the first table lacks.
std::vector<std::vector<std::string>> random_cells(std::uint32_t rows, bool missing, bool other) {
  const std::vector<std::string> signs = {"a b", "a_b", "int", "\"\xC3\xA9?", "new"};
  const std::vector<std::string> sizes = {"large", "small", "huge"};
  std::vector<std::vector<std::string>> cells;
  for (std::uint32_t i = 0; i < rows; ++i) {
    const std::uint32_t salt = i * 8 + (other ? 100000 : 0);
    const auto sign = static_cast<std::size_t>(whole_number(0, other ? 4 : 3, salt));
    const auto size = static_cast<std::size_t>(whole_number(0, other ? 2 : 1, salt + 1));
    cells.push_back({std::to_string(1700000000 + whole_number(0, 9999, salt + 2)),
                     concat(whole_number(-99, 99, salt + 3), ".", whole_number(1, 9, salt + 4)),
                     signs[sign], sizes[size], sign < 2 ? "yes" : "no"});
    for (std::uint32_t column = 0; missing && column < 4; ++column) {
      if (whole_number(0, 9, salt + 40000 + column) == 0) cells.back()[column].clear();
    }
  }
  return cells;
}

std::string table_of(const std::vector<std::vector<std::string>>& cells, bool with_times) {
  std::string text = with_times ? "time,default,sign,size,class\n" : "default,sign,size,class\n";
  for (const std::vector<std::string>& row : cells) {
    for (std::size_t i = with_times ? 0 : 1; i < row.size(); ++i) {
      text += (row[i].starts_with('"') ? "\"\"" + row[i] + "\"" : row[i]) +
              (i + 1 < row.size() ? "," : "\n");
    }
  }
  return text;
}

// What a program puts into the cells of a row: numbers, the numbers of words' features, NaN.
std::vector<double> cells_for_c(const std::vector<std::vector<std::string>>& cells,
                                const TableSchema& table, bool with_times) {
  const std::vector<std::string> names = table.feature_names();
  std::vector<double> all;
  for (const std::vector<std::string>& row : cells) {
    for (std::size_t i = with_times ? 0 : 1; i < 4; ++i) {
      const std::size_t column = with_times ? i : i - 1;
      const auto found =
          std::find(names.begin(), names.end(), table.columns[column].name + "=" + row[i]);
      if (row[i].empty()) {
        all.push_back(std::numeric_limits<double>::quiet_NaN());
      } else if (i < 2) {
        all.push_back(std::stod(row[i]));
      } else {
        all.push_back(found == names.end() ? -1.0 : static_cast<double>(found - names.begin()));
      }
    }
  }
  return all;
}

// Trains on a table; the rows are those of another one, whose words are not all known.
Exported trained_on_table(const std::string& recipe, MissingCells missing, bool with_times) {
  const TempDir folder;
  const bool holes = missing != MissingCells::kRefuse;
  TrainOptions options;
  options.data = folder.write("t.csv", table_of(random_cells(200, holes, false), with_times));
  DataOptions source;
  source.csv.missing = missing;
  Dataset dataset = open_dataset(options.data, source);
  options.model = "mlp:12";
  options.recipe = recipe;
  options.epochs = 4;
  options.save = folder / "m.safetensors";
  train(dataset, with_defaults(options, dataset));
  const SavedRun saved(options.save);
  const TableSchema schema = saved.table();
  source.csv.schema = &schema;
  const auto cells = random_cells(300, holes, true);
  Dataset other = open_dataset(folder.write("other.csv", table_of(cells, with_times)), source);
  const LoadedModel loaded = load_model(saved, other);
  std::vector<std::int32_t> rows(cells.size());
  std::iota(rows.begin(), rows.end(), 0);
  Exported e = exported(describe_network(saved, loaded), loaded, other, rows);
  e.cells = cells_for_c(cells, schema, with_times);
  return e;
}

}  // namespace

TEST_CASE("c header: logits are those of our own inference on all test rows, bit by bit") {
  const std::vector<Exported> all{
      trained("wdbc", "mlp:64,64", "votes", 3),
      trained("iris", "mlp:8", "latent8", 5),
      trained("digits", "mlp:32", "latent8", 3),
      trained("digits", "mlp:48,24:norm=layer:activation=tanh:dropout=0.2", "shared8", 2),
      trained("digits", "conv:8,M,12", "latent8", 2),
      trained("digits", "conv:8,R,12/2,F20:dropout=0.1", "latent8", 2)};
  for (const Exported& e : all) CHECK(e.network.is_exact());
  compile_and_compare(all);
}

TEST_CASE("c header: rows of words and missing cells are encoded as data sets do, bit by bit") {
  const std::vector<Exported> all{trained_on_table("latent8", MissingCells::kMean, true),
                                  trained_on_table("votes", MissingCells::kMode, true),
                                  trained_on_table("latent8", MissingCells::kMean, false),
                                  trained_on_table("latent8", MissingCells::kMode, false),
                                  trained_on_table("latent8", MissingCells::kRefuse, false)};
  CHECK(!all[0].network.offsets.empty());
  CHECK(all[2].network.offsets.empty());
  for (const Exported& e : all) CHECK(e.network.is_exact());
  CHECK(all[0].network.inputs == 1 + 1 + 4 + 2 + 4);  // words, and indicators
  CHECK(all[1].network.inputs == 1 + 1 + 4 + 2);
  // The most frequent cells fill, a word by a 1 in its feature and 0 in the others.
  CHECK(all[0].network.fills.empty());
  const std::vector<double>& fills = all[1].network.fills;
  REQUIRE(std::ssize(fills) == all[1].network.inputs);
  CHECK(fills[0] == all[1].network.table->columns[0].fill_number);
  CHECK(fills[0] >= 1700000000.0);
  CHECK(std::accumulate(fills.begin() + 2, fills.begin() + 6, 0.0) == 1.0);
  CHECK(std::accumulate(fills.begin() + 6, fills.end(), 0.0) == 1.0);
  compile_and_compare(all);
}

TEST_CASE("c header: MNIST, where it is in the cache of fetched sets") {
  const char* home = std::getenv("HOME");
  const std::filesystem::path cache =
      std::filesystem::path(home == nullptr ? "" : home) / ".cache/tritgrad/mnist";
  if (!std::filesystem::exists(cache)) {
    skip_or_fail("MNIST (tritgrad data fetch mnist)");
    return;
  }
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
  all.push_back(random_network("conv:5,R,7/2,R,M,F40,F9", "votes", {}, 22, {11, 6, 3}));
  all.push_back(random_network("conv:5/2,R,6/2", "shared4", {"weight.group=32"}, 23, {9, 4, 2}));
  all.push_back(random_network("mlp:", "trits", {}, 20));
  all.back().network.offsets.assign(static_cast<std::size_t>(all.back().network.inputs), 1e9);
  // What can be told apart beside the offset, 2^-20 and more, goes through.
  for (float& x : all.back().inputs) x = 0.0f;
  infer_again(all.back());
  // Standardised numbers beyond the largest float saturate, of both signs.
  all.push_back(random_network("mlp:", "trits", {}, 21));
  for (float& x : all.back().network.inverse_stds) x = 1e5f;
  for (float& x : all.back().network.layers[0].product.scales) x *= 1e-20f;
  for (float& x : all.back().inputs) x *= 1e38f;
  infer_again(all.back());
  CHECK(std::all_of(all.back().logits.begin(), all.back().logits.end(),
                    [](float x) { return std::isfinite(x); }));
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
  all.push_back(random_network("conv:6/2,R,F8", "fp32", {}, 7, {6, 5, 2}));
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
  const RowNumbers rows = scored_rows(saved, dataset).rows;
  CHECK(check_network(network, loaded, dataset, rows).passed());
  CHECK(!check_network(network, loaded, dataset, {}).passed());
  std::int8_t& trit = network.layers.front().product.trits.front();
  trit = static_cast<std::int8_t>(trit == 1 ? -1 : trit + 1);
  const SelfCheck result = check_network(network, loaded, dataset, rows);
  CHECK(!result.passed());
  CHECK(result.differing_rows > 0);
  const auto said = [](const SelfCheck& of) {
    return refusal([&] { require_passed(of, "m.h", "iris"); });
  };
  CHECK(said(result).find(" of 30 rows are not those of the model") != std::string::npos);
  require_passed(check_network(describe_network(saved, loaded), loaded, dataset, rows), "m.h", "");
  // A model that has diverged so far that sums overflow.
  Parameter& gain = *bind_layer(loaded.model->parameters(), layer_name(0)).norm.gain;
  encode_all(gain.storage(), std::vector<float>(8, std::numeric_limits<float>::max()));
  CHECK(said(check_network(describe_network(saved, loaded), loaded, dataset, rows))
            .find(concat("outputs of row ", rows[0] + 1, " of 'iris' are not finite")) !=
        std::string::npos);
}

TEST_CASE("c header: names of files become C identifiers") {
  CHECK(c_identifier("digits") == "digits");
  CHECK(c_identifier("my-model.v2") == "my_model_v2");
  CHECK(c_identifier("3layers") == "model_3layers");
  CHECK(c_identifier("_x") == "model__x");
  CHECK(refusal([] { c_identifier("\xE6\xA8\xA1"); }).find("no letter or digit") !=
        std::string::npos);
  const std::vector<std::string> endings = {"a_b", "a_b_2", "a_b_3", "int", "", "_2"};
  CHECK(c_name_endings({"a b", "a_b", "a.b", "int", "", ""}) == endings);
  const std::vector<std::string> cut =
      c_name_endings({std::string(70, 'x') + "1", std::string(70, 'x') + "2"});
  CHECK(cut[0] == std::string(60, 'x'));
  CHECK(cut[1] == std::string(60, 'x') + "_2");
}

}  // namespace tritgrad::test::test_c_header
