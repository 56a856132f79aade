// libFuzzer entry for what leaves the program: a network on a table, whatever its columns and
// classes are called, written for each target. The first byte chooses the target, the second one a
// recipe and how the table is read; the first line is the model, the others are the table. A
// refusal (Error) is a good result; a file that our own readers do not take, that has fewer bytes
// than its tables, or that is not known as an export, is none.
#include <algorithm>
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

void read_back(std::string_view ending, const std::string& bytes) {
  if (ending == ".safetensors") {
    SafetensorsFile::parse(std::as_bytes(std::span(bytes)), "export");
  }
  if (ending != ".npz") return;
  const ZipArchive archive(bytes, "export");
  for (const std::string& name : archive.names()) parse_npy(archive.read(name), name);
}

void write_export(const ExportTarget& target, unsigned choice, std::string_view input) {
  const std::size_t line = std::min(input.find('\n'), input.size());
  CsvOptions options;
  options.missing = static_cast<MissingCells>(choice / 4 % 4);
  const Dataset data = parse_csv(input.substr(std::min(line + 1, input.size())), "t.csv", options);
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto targets = export_targets();
  const ExportTarget& target = targets[data[0] % targets.size()];
  if (target.network.write == nullptr) return 0;
  try {
    write_export(target, data[1], {reinterpret_cast<const char*>(data) + 2, size - 2});
  } catch (const Error&) {
  }
  return 0;
}
