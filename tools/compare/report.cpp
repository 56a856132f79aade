#include "tools/compare/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <span>

#include "engine/atomic_file.h"
#include "engine/check.h"
#include "tools/command_line.h"
#include "tools/compare/figures.h"
#include "tools/compare/findings.h"
#include "tools/compare/glossary.h"
#include "tools/compare/tables.h"
#include "tools/numbers.h"

namespace tritgrad {
namespace {

std::string title_of(const ComparisonRecord& record) {
  return fmt::format("{} on {}", record.model, record.data);
}

// "2-mnist-": names of files hold nothing that a shell or a link would stumble over.
std::string picture_prefix(const ComparisonRecord& record, std::size_t number) {
  std::string name;
  for (const unsigned char c : record.data) {
    name += std::isalnum(c) != 0 ? static_cast<char>(std::tolower(c)) : '-';
  }
  return fmt::format("{}-{}-", number, name);
}

std::string model_line(const ComparisonRecord& record) {
  if (record.runs.empty()) return record.model;
  const RunResult& run = record.runs.front();
  return fmt::format("{}, {} parameters, {}", run.model,
                     human_count(static_cast<double>(run.parameters)),
                     counted(run.epochs, "epoch"));
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
  for (const ComparisonRecord& record : report.records) {
    for (const RunResult& run : record.runs) {
      if (!run.machine.empty()) ++counts[run.machine];
    }
  }
  if (counts.empty() || (counts.size() == 1 && counts.contains(report.machine))) return "";
  std::string text;
  for (const auto& [machine, runs] : counts) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", machine, counted(runs, "run"));
  }
  return text;
}

bool is_markdown(const std::filesystem::path& path) { return path.extension() == ".md"; }

std::filesystem::path folder_of_pictures(std::filesystem::path path) {
  return path.replace_extension();
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

void check_report_path(const std::string& path) {
  if (path.empty()) return;
  const std::filesystem::path file = path;
  const std::string stem = file.stem().string();
  check((file.extension() == ".html" || is_markdown(file)) && stem != "." && stem != "..",
        "--report: '", path, "' found, NAME.html or NAME.md expected");
  check_writable("--report", path);
  if (!is_markdown(file)) return;
  const std::filesystem::path folder = folder_of_pictures(file);
  check(!std::filesystem::exists(folder) || std::filesystem::is_directory(folder), "--report: '",
        folder.string(), "' is a file, but the pictures of '", path,
        "' need a folder of that name; choose another name");
}

void make_picture_folder(const std::string& path) {
  if (!is_markdown(path)) return;
  const std::filesystem::path folder = folder_of_pictures(path);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  check(!error, "the folder '", folder.string(), "' of the pictures cannot be made (",
        error.message(), ")");
  check_writable("--report", (folder / "picture.svg").string());
}

void write_report(const std::string& path, const Report& report) {
  const Page page = make_page(report);
  if (!is_markdown(path)) {
    const std::string html = render_html(page);
    replace_file(path, std::as_bytes(std::span(html)));
    return;
  }
  make_picture_folder(path);
  const std::filesystem::path folder = folder_of_pictures(path);
  for (const PageBlock& block : page.blocks) {
    const auto* pictures = std::get_if<Pictures>(&block);
    if (pictures == nullptr) continue;
    for (const Figure& figure : pictures->figures) {
      replace_file(folder / (figure.name + ".svg"), std::as_bytes(std::span(figure.svg)));
    }
  }
  const std::string markdown = render_markdown(page, folder.filename().string());
  replace_file(path, std::as_bytes(std::span(markdown)));
}

}  // namespace tritgrad
