#include "tools/report_html.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "engine/atomic_file.h"
#include "engine/check.h"
#include "tools/markup.h"
#include "tools/numbers.h"
#include "tools/report_figures.h"
#include "tools/report_style.h"
#include "tools/summary.h"

namespace tritgrad {
namespace {

std::string cell(const char* tag, const std::string& text, const char* attributes = "") {
  return fmt::format("<{}{}>{}</{}>", tag, attributes, escape_markup(text), tag);
}

std::string row(const std::string& cells, const char* attributes = "") {
  return fmt::format("<tr{}>{}</tr>\n", attributes, cells);
}

// The heading of the report: first the finding, then what it rests on.
std::string opening(const Report& report, const Comparison& comparison) {
  std::string html = cell("h1", report.title) + "\n";
  html += cell("p", headline(comparison), " class=\"headline\"") + "\n<dl class=\"facts\">\n";
  const auto fact = [&html](const char* name, const std::string& text) {
    if (!text.empty()) html += fmt::format("<div>{}{}</div>\n", cell("dt", name), cell("dd", text));
  };
  fact("Data", report.dataset);
  if (!report.runs.empty()) {
    const RunResult& run = report.runs.front();
    fact("Model", fmt::format("{}, {} parameters, {} epochs", run.model,
                              human_count(static_cast<double>(run.parameters)), run.epochs));
  }
  fact("Machine", report.machine);
  return html + "</dl>\n";
}

std::string summary_row(const RecipeSummary& summary) {
  const SummaryText text = describe(summary);
  std::string cells = cell("th", summary.recipe, " scope=\"row\"");
  for (const std::string& value :
       {std::to_string(summary.seeds), text.accuracy, text.delta, text.weights, text.scales,
        text.residual, text.moments, text.gradients, text.total, text.ratio, text.seconds_per_epoch,
        text.zeros, text.flips, text.peak}) {
    cells += cell("td", value);
  }
  return row(cells, summary.is_baseline ? " class=\"baseline\"" : "");
}

std::string summary_table(const Comparison& comparison) {
  std::string html = "<h2>Summary</h2>\n<div class=\"scroll\"><table>\n<thead>\n";
  html +=
      row(cell("th", "recipe", " rowspan=\"2\" scope=\"col\"") +
          cell("th", "seeds", " rowspan=\"2\" scope=\"col\"") +
          cell("th", comparison.accuracy_name + " %", " rowspan=\"2\" scope=\"col\"") +
          cell("th", "Δ " + comparison.baseline, " rowspan=\"2\" scope=\"col\"") +
          cell("th", "bytes per parameter", " colspan=\"6\" scope=\"colgroup\" class=\"group\"") +
          cell("th", "× " + comparison.baseline, " rowspan=\"2\" scope=\"col\"") +
          cell("th", "s/epoch", " rowspan=\"2\" scope=\"col\"") +
          cell("th", "zeros", " rowspan=\"2\" scope=\"col\"") +
          cell("th", "flips/step", " rowspan=\"2\" scope=\"col\"") +
          cell("th", "peak memory", " rowspan=\"2\" scope=\"col\""));
  std::string categories;
  for (const char* name : {"weights", "scales", "residual", "moments", "gradients", "total"}) {
    categories += cell("th", name, " scope=\"col\"");
  }
  html += row(categories) + "</thead>\n<tbody>\n";
  for (const RecipeSummary& summary : comparison.recipes) html += summary_row(summary);
  return html + "</tbody>\n</table></div>\n";
}

std::string figures(const Report& report, const Comparison& comparison) {
  std::string html = "<h2>Pictures</h2>\n<div class=\"figures\">\n";
  for (const Figure& figure : draw_figures(report.runs, comparison)) {
    html += "<figure>\n" + figure.svg + cell("figcaption", figure.caption) + "\n</figure>\n";
  }
  return html + "</div>\n";
}

std::string repeat_section(const Report& report) {
  if (report.command.empty()) return "";
  return "<h2>How to repeat</h2>\n<pre>" + cell("code", report.command) +
         "</pre>\n<p>The same command on the same data and instruction set gives the same weights, "
         "whatever the number of threads: compare the hashes of every run below.</p>\n";
}

std::string definitions(const Comparison& comparison) {
  const std::string base = comparison.baseline;
  const std::vector<std::pair<std::string, std::string>> entries = {
      {comparison.accuracy_name + " %",
       "Mean over seeds ± sample standard deviation over seeds; with one cross-validated seed, "
       "over "
       "its folds. No ± where there is only one value."},
      {"Δ " + base, "Points of accuracy above or below " + base +
                        ". In the headline ± is the standard error of this difference, and a "
                        "difference under two "
                        "of them is called noise."},
      {"weights",
       "What inference reads: trits, codes, values, biases, gains, running statistics; for master "
       "the "
       "fp32 master itself, from which the ternary value is derived."},
      {"scales", "Scales of ternary groups."},
      {"residual",
       "What an update could not express in the weight: accumulators beside the trits."},
      {"moments", "Optimizer state."},
      {"gradients",
       "Gradient buffers that outlive their layer. Released gradients exist for one layer at a "
       "time "
       "and show in the peak memory only."},
      {"total",
       "The sum of these five, each counted in bytes while training and divided by the number of "
       "trained parameters."},
      {"× " + base, "Total bytes per parameter divided by those of " + base + "."},
      {"s/epoch", "Wall time of the run divided by its epochs."},
      {"zeros", "Share of ternary weights that are zero at the end."},
      {"flips/step", "Ternary weights that changed their value, per optimizer step."},
      {"peak memory",
       "Most bytes live at once, activations included and the dataset left out; the largest of all "
       "seeds."}};
  std::string html = "<h2>Definitions</h2>\n<dl class=\"definitions\">\n";
  for (const auto& [name, text] : entries) html += cell("dt", name) + cell("dd", text) + "\n";
  return html + "</dl>\n";
}

std::string run_row(const RunResult& run) {
  const auto accuracy = [](const std::optional<double>& value) {
    return value ? fixed(100.0 * *value, 2) : std::string(kMissing);
  };
  std::string test = accuracy(run.test_accuracy);
  if (run.test_accuracy_std) test += " ± " + fixed(100.0 * *run.test_accuracy_std, 2);
  std::string cells = cell("th", run.recipe, " scope=\"row\"");
  for (const std::string& value :
       {run.compute, std::to_string(run.seed), test, accuracy(run.val_accuracy),
        significant(run.train_loss, 3), std::to_string(run.steps), significant(run.seconds, 3),
        fixed(run.bytes_per_parameter.total(), 2)}) {
    cells += cell("td", value);
  }
  return row(cells + cell("td", run.weights_sha256, " class=\"hash\""));
}

std::string seeds_section(const Report& report) {
  std::string heads;
  for (const char* name :
       {"recipe", "compute", "seed", "test accuracy %", "validation accuracy %", "training loss",
        "steps", "seconds", "bytes/parameter", "SHA-256 of the weights"}) {
    heads += cell("th", name, " scope=\"col\"");
  }
  std::string html = fmt::format(
      "<details>\n<summary>Every run ({})</summary>\n<div class=\"scroll\"><table>\n<thead>\n{}"
      "</thead>\n<tbody>\n",
      report.runs.size(), row(heads));
  for (const RunResult& run : report.runs) html += run_row(run);
  return html + "</tbody>\n</table></div>\n</details>\n";
}

}  // namespace

std::string render_report(const Report& report) {
  const Comparison comparison = compare(report.runs, report.baseline);
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n";
  html += cell("title", report.title) + "\n" + report_style() + "</head>\n<body>\n<main>\n";
  html += opening(report, comparison);
  if (!report.runs.empty()) html += summary_table(comparison) + figures(report, comparison);
  html += repeat_section(report) + definitions(comparison) + seeds_section(report);
  return html + "</main>\n</body>\n</html>\n";
}

void write_report(const std::string& path, const Report& report) {
  const std::string page = render_report(report);
  replace_file(path, std::as_bytes(std::span(page)));
}

}  // namespace tritgrad
