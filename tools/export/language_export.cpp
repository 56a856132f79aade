#include "tools/export/language_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "engine/check.h"
#include "engine/files/checkpoint.h"
#include "models/export/gguf.h"
#include "models/export/language_network.h"
#include "models/networks/llama.h"
#include "models/training/evaluate.h"

namespace tritgrad {
namespace {

// Tokens that are compared: the description is inferred in plain loops.
constexpr std::int64_t kCheckedTokens = 1024;

// Returns windows evenly spaced among these, with as many tokens as are compared.
std::vector<std::int32_t> spaced(std::span<const std::int32_t> windows, std::int64_t tokens) {
  const std::int64_t n = std::clamp<std::int64_t>(kCheckedTokens / tokens, 1, std::ssize(windows));
  std::vector<std::int32_t> chosen;
  for (std::int64_t i = 0; i < n; ++i) {
    chosen.push_back(windows[static_cast<std::size_t>(i * std::ssize(windows) / n)]);
  }
  return chosen;
}

LanguageCheck check_language(const LanguageNetwork& network, const LoadedModel& loaded,
                             const Dataset& dataset, std::span<const std::int32_t> windows) {
  LanguageCheck result;
  Loader loader(dataset, windows, loaded.standardizer, 1, 0, RowOrder::kAsGiven);
  Tape tape;
  tape.set_recording(false);
  for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
    const Batch batch = loader.next();
    const Tensor logits = loaded.model->forward(tape, batch.x, {}).value;
    compare_rows(network, batch.x, batch.labels, logits, result);
    tape.reset();
  }
  return result;
}

std::vector<std::string> language_provenance(const ExportReport& report,
                                             const std::string& trained_on,
                                             const std::string& sha256) {
  return {
      fmt::format("{} with recipe {}, trained on {} for {} steps{}.", report.model, report.recipe,
                  trained_on, report.steps, report.finished ? "" : " (not finished)"),
      fmt::format("{:.4f} nats a token on {} tokens of {}; {} weights of {:.2f} bits.",
                  report.language_check->loss_after(), report.language_check->positions,
                  report.data, report.weights, report.bits_per_weight()),
      "Weights SHA-256 " + sha256, export_signature()};
}

}  // namespace

FinishedExport export_language_model(const SavedRun& run, Dataset& dataset,
                                     const std::string& trained_on, const ExportRequest& request) {
  const ExportTarget& target = *request.target;
  const LoadedModel loaded = load_model(run, dataset);
  const SavedModel& plan = loaded.plan;
  LanguageNetwork network = describe_language_network(
      loaded.model->parameters(), fit_llama(parse_llama(plan.model), plan.input, plan.outputs),
      plan.recipe.compute);
  network.tokens = pieces_of(run.vocabulary());
  target.language.check(network, request.settings);
  const LanguageCheck result = check_language(
      network, loaded, dataset, spaced(scored_rows(run, dataset).rows, dataset.features));
  require_passed(result, request.to, dataset.name);
  FinishedExport made{
      {.checkpoint = run.path(),
       .model = plan.model,
       .recipe = plan.recipe.name,
       .data = dataset.name,
       .request = request,
       .described_exactly = false,
       .is_exact = false,
       .finished = run.is_finished(),
       .has_dropout = false,
       .steps = run.step(),
       .weights = network.weights(),
       .file_bytes = 0,
       .bytes = target.language.bytes(network, request.settings),
       .check = {},
       .language_check = result,
       .scale_change =
           is_ternary(request.settings.gguf_type) ? largest_scale_change(network) : 0.0},
      {}};
  const ExportHead head{
      std::filesystem::path(request.to).stem().string(),
      language_provenance(made.report, trained_on, weights_sha256(loaded.model->parameters()))};
  made.bytes = target.language.write(network, head, request.settings);
  made.report.file_bytes = std::ssize(made.bytes);
  return made;
}

}  // namespace tritgrad
