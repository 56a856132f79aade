#include "tools/compare/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "tools/compare/figures.h"
#include "tools/compare/findings.h"
#include "tools/compare/glossary.h"
#include "tools/compare/tables.h"
#include "tools/report/numbers.h"

namespace tritgrad {
namespace {

std::string title_of(const ComparisonRecord& record) {
  return fmt::format("{} on {}", record.model, record.data);
}

// "2-mnist-": names of files hold nothing that a shell or a link would stumble over.
std::string picture_prefix(const ComparisonRecord& record, std::size_t number) {
  std::string name;
  for (const char c : record.data) {
    const auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : '-';
  }
  return fmt::format("{}-{}-", number, name);
}

std::string model_line(const ComparisonRecord& record) {
  if (record.runs.empty()) return record.model;
  const RunResult& run = record.runs.front();
  const std::string labels = label_words(run), pixels = pixel_words(run);
  return fmt::format("{}, {} parameters, {} in batches of {}{}{}{}", run.model,
                     human_count(static_cast<double>(run.parameters)), counted(run.epochs, "epoch"),
                     run.batch, run.augment.empty() ? "" : ", images augmented by " + run.augment,
                     labels.empty() ? ", labels not smoothed" : ", " + labels,
                     pixels.empty() ? "" : ", " + pixels);
}

std::string time_line(const ComparisonRecord& record) {
  std::size_t trials = 0;
  for (const Tuning& tuning : record.tunings) trials += tuning.candidates.size();
  return fmt::format(
      "{} for {}{}", duration(record.seconds()),
      counted(static_cast<std::int64_t>(record.runs.size() + trials), "run"),
      trials > 0 ? fmt::format(", {} of them to choose learning rates", trials) : "");
}

// "one (3 runs); another (1 run)", or nothing when all were made on the machine of the report.
std::string machines_of_runs(const Report& report) {
  std::map<std::string, std::int64_t> counts;
  const auto count = [&](const std::string& machine) {
    if (!machine.empty()) ++counts[machine];
  };
  for (const ComparisonRecord& record : report.records) {
    for (const RunResult& run : record.runs) count(run.machine);
    for (const Tuning& tuning : record.tunings) {
      for (const TuningCandidate& candidate : tuning.candidates) count(candidate.machine);
    }
  }
  if (counts.empty() || (counts.size() == 1 && counts.contains(report.machine))) return "";
  std::string text;
  for (const auto& [machine, runs] : counts) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", machine, counted(runs, "run"));
  }
  return text;
}

void add_record(Page& page, const ComparisonRecord& record, std::size_t number) {
  const Comparison comparison = compare(record.runs, record.baseline);
  const auto add = [&](PageBlock block) { page.blocks.push_back(std::move(block)); };
  add(Heading{2, title_of(record)});
  add(Paragraph{headline(comparison), true});
  add(Facts{
      {{"Data", record.dataset}, {"Model", model_line(record)}, {"Time", time_line(record)}}});
  if (record.runs.empty()) return;
  add(Bullets{findings(record, comparison)});
  add(accuracy_table(record, comparison));
  for (const std::string& note : footnotes(comparison)) add(Paragraph{note});
  add(Pictures{draw_figures(record, comparison, picture_prefix(record, number))});
  add(Heading{3, "Bytes per parameter"});
  add(bytes_table(comparison));
  if (!record.tunings.empty()) {
    add(Heading{3, "Learning rates"});
    add(tuning_table(record));
  }
  add(Heading{3, "How to repeat"});
  add(Code{record.command});
  add(runs_table(record));
}

}  // namespace

Page make_page(const Report& report) {
  const bool single = report.records.size() == 1;
  Page page;
  page.title = single ? "Comparison of recipes: " + title_of(report.records.front())
                      : std::string("Comparison of recipes");
  page.blocks.push_back(Paragraph{question(report.records)});
  double seconds = 0.0;
  for (const ComparisonRecord& record : report.records) seconds += record.seconds();
  Facts facts{{{"Machine", report.machine}, {"Time", duration(seconds)}}};
  const std::string makers = machines_of_runs(report);
  if (!makers.empty()) facts.entries.push_back({"Machines of the runs", makers});
  page.blocks.push_back(facts);
  page.blocks.push_back(Code{report.command});
  if (!single) {
    page.blocks.push_back(
        Paragraph{"Differences to the baseline in points of accuracy, with the 95 % interval where "
                  "there is one; in the baseline's row its accuracy."});
    page.blocks.push_back(overview_table(report.records));
  }
  for (std::size_t i = 0; i < report.records.size(); ++i) {
    add_record(page, report.records[i], i + 1);
  }
  page.blocks.push_back(Heading{2, "Definitions"});
  page.blocks.push_back(glossary(report.records));
  return page;
}

}  // namespace tritgrad
