// libFuzzer entry for what leaves the program: a network on a table, whatever its columns and
// classes are called, written for each target that takes one, and a language model, whatever its
// tokens are called, as GGUF. The first byte chooses the target, the second one a recipe, how the
// table is read, and whether its rows are images, which convolutions take. Of a network the first
// line is the model, the others are the table; of a language model all is the tokenizer. A refusal
// (Error) is a good result; a file that is not known as an export, that has fewer bytes than its
// tables, or that our own reader does not take, where we have one (.safetensors, .npz, and in the
// tests .gguf), is none.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/check.h"
#include "engine/data/csv.h"
#include "engine/data/npy.h"
#include "engine/files/safetensors.h"
#include "engine/files/zip.h"
#include "models/export/export_target.h"
#include "models/training/saved_run.h"
#include "tests/support/gguf_reader.h"
#include "tests/support/random_language.h"

namespace {

using namespace tritgrad;

void expect(bool condition) {
  if (!condition) std::abort();
}

// Networks of more weights would take longer than they are worth.
constexpr std::int64_t kMostWeights = 2000;

const Recipe& recipe_of(unsigned choice) {
  static const Recipe recipes[] = {load_recipe("votes"), load_recipe("latent8"),
                                   load_recipe("fp32"), load_recipe("naive")};
  return recipes[choice % std::size(recipes)];
}

bool is_small(const SavedModel& plan) {
  std::int64_t weights = 0;
  for (const ParameterSpec& parameter :
       plan_model(plan.model, plan.input, plan.outputs, plan.recipe)) {
    if (parameter.shape.size() > kMostWeights) return false;
    weights += parameter.shape.size();
  }
  return weights <= kMostWeights;
}

// A refusal here, of what was just written, ends the program, as no caller gets to know it.
void read_back(std::string_view ending, const std::string& bytes) noexcept {
  if (ending == ".safetensors") {
    SafetensorsFile::parse(std::as_bytes(std::span(bytes)), "export");
  }
  if (ending != ".npz") return;
  const ZipArchive archive(bytes, "export");
  for (const std::string& name : archive.names()) parse_npy(archive.read(name), name);
}

void read_back(const LanguageNetwork& network, const std::string& bytes) noexcept {
  const test::GgufContents file = test::read_gguf(bytes);
  const auto tokens = file.at<std::vector<std::string>>("tokenizer.ggml.tokens");
  expect(std::ssize(tokens) == network.sizes.vocabulary);
  expect(network.reads_bytes() || tokens == network.tokens.pieces);
}

// Takes rows of as many features as a square has pixels for images.
void adopt_square(Dataset& data) {
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(data.features)));
  if (side * side != data.features) return;
  data.image = {side, side, 1};
  data.schema = nullptr;
}

void write_export(const ExportTarget& target, unsigned choice, std::string_view input) {
  const std::size_t line = std::min(input.find('\n'), input.size());
  CsvOptions options;
  options.missing = static_cast<MissingCells>(choice / 4 % 4);
  Dataset data = parse_csv(input.substr(std::min(line + 1, input.size())), "t.csv", options);
  if (choice / 64 % 2 == 1) adopt_square(data);
  const SavedModel plan{std::string(input.substr(0, line)), data, data.outputs(),
                        recipe_of(choice)};
  if (!is_small(plan)) return;
  const InferenceNetwork network = describe_untrained(plan, data, TrainSpec());
  const ExportHead head{
      "model", {data.remarks.notes.empty() ? "" : data.remarks.notes.front(), export_signature()}};
  ExportSettings settings;
  settings.trits = static_cast<TritPacking>(choice / 16 % 3);
  settings.standard_onnx_ops = choice % 2 == 0;
  target.network.check(network, head);
  const std::string bytes = target.network.write(network, head, settings);
  expect(is_export(bytes));
  expect(target.network.bytes(network, settings).tables() <= std::ssize(bytes));
  read_back(target.ending, bytes);
}

// A model of random numbers whose tokens are the pieces of the tokenizer, or bytes without one.
void write_language(const ExportTarget& target, unsigned choice, std::string_view tokenizer) {
  const Vocabulary vocabulary = tokenizer.empty()
                                    ? Vocabulary::of_bytes()
                                    : Vocabulary::of_pieces(std::string(tokenizer), "tokenizer");
  if (vocabulary.size() > kMostWeights) return;
  test::RandomLanguage kind{.sizes = {.layers = 1,
                                      .width = 4,
                                      .heads = 2,
                                      .kv_heads = 1,
                                      .ff = 8,
                                      .context = 8,
                                      .vocabulary = vocabulary.size()},
                            .ternary = false};
  kind.sizes.tied = choice % 2 == 1;
  LanguageNetwork network = test::RandomLanguageMaker(kind).make();
  network.tokens = pieces_of(vocabulary);
  ExportSettings settings;
  settings.gguf_type = choice / 2 % 2 == 1 ? GgufType::kF16 : GgufType::kF32;
  target.language.check(network, settings);
  const std::string bytes =
      target.language.write(network, {"model", {export_signature()}}, settings);
  expect(is_export(bytes));
  expect(target.language.bytes(network, settings).tables() <= std::ssize(bytes));
  read_back(network, bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto targets = export_targets();
  const ExportTarget& target = targets[data[0] % targets.size()];
  const auto write = target.takes(true) ? write_language : write_export;
  try {
    write(target, data[1], {reinterpret_cast<const char*>(data) + 2, size - 2});
  } catch (const Error&) {
  }
  return 0;
}
