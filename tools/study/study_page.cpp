#include "tools/study/study_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/report/number_text.h"
#include "tools/report/page.h"
#include "tools/report/svg.h"
#include "tools/study/study_charts.h"

namespace tritgrad {
namespace {

constexpr const char* kTitle = "MicroAdam on Iris and Breast Cancer";

// In shorter runs, tremor and periods cannot be told from the fall of the loss: ten of the longest
// periods (ten epochs of Breast Cancer) on each side of a smoothing window.
constexpr int kEpochsToJudge = 200;

std::string study_style() {
  return "<style>.lead{max-width:56rem}h3{font-size:1rem;margin:0 0 .25rem}"
         "details.numbers{margin-top:1rem}details.numbers summary{font-size:.95rem;"
         "font-weight:600}</style>\n";
}

std::string lead(const std::string& text) { return element("p", text, " class=\"lead\""); }

// The median over seeds, and where there are several the smallest and the largest:
// "0.0137 (0.0120 to 0.0151)".
std::string sample_text(const std::vector<double>& values) {
  const std::string middle = significant(median(values), 3);
  if (values.size() < 2) return middle;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return fmt::format("{} ({} to {})", middle, significant(*low, 3), significant(*high, 3));
}

std::string charts_grid(const std::vector<StudyChart>& charts) {
  std::string html = "<div class=\"figures\">\n";
  for (const StudyChart& chart : charts) {
    html += "<figure>\n" + element("h3", chart.title) + chart.svg +
            element("figcaption", chart.caption) + "</figure>\n";
  }
  return html + "</div>\n";
}

std::string cells_of(const char* tag, const std::vector<std::string>& texts) {
  std::string html;
  for (const std::string& text : texts) html += element(tag, text);
  return html;
}

std::string number_row(const StudyPanel& panel, const StudyLine& line,
                       const StudyResults& results) {
  const auto text = [&](auto number_of) {
    return sample_text(results.numbers(line.variant, number_of));
  };
  const auto period = [&](PhaseRatio CurveNumbers::*which) {
    const auto ratio = [which](const CurveNumbers& n) { return (n.*which).ratio; };
    const auto noise = [which](const CurveNumbers& n) { return (n.*which).control; };
    return fmt::format("{} / {}", significant(median(results.numbers(line.variant, ratio)), 3),
                       significant(median(results.numbers(line.variant, noise)), 3));
  };
  return "<tr>\n" + element("th", panel.title() + ": " + line.name, " scope=\"row\"") +
         cells_of("td",
                  {text([](const CurveNumbers& n) { return n.end_loss; }),
                   text([](const CurveNumbers& n) { return n.largest_rise; }),
                   text([](const CurveNumbers& n) { return n.update_length; }),
                   text([](const CurveNumbers& n) { return 100.0 * std::expm1(n.roughness); }),
                   period(&CurveNumbers::turn), period(&CurveNumbers::length),
                   period(&CurveNumbers::loss),
                   text([](const CurveNumbers& n) { return 100.0 * n.test_accuracy; })}) +
         "</tr>\n";
}

std::string numbers_table(const StudyFigure& figure, const StudyResults& results) {
  std::string html =
      "<details class=\"numbers\">\n<summary>Numbers of every curve</summary>\n"
      "<div class=\"scroll\"><table>\n<thead>\n";
  html +=
      "<tr>\n" +
      cells_of("th", {"curve", "loss at the end", "largest rise between epochs", "update length",
                      "tremor, %", "turn: period 10 / noise", "length: period 10 / noise",
                      "step loss: period 10 / noise", "test accuracy, %"}) +
      "</tr>\n</thead>\n<tbody>\n";
  for (const StudyPanel& panel : figure.panels) {
    for (const StudyLine& line : panel.lines) html += number_row(panel, line, results);
  }
  return html + "</tbody>\n</table></div>\n</details>\n";
}

std::string opening(const StudyPage& page, const StudyResults& results) {
  const StudyOptions& options = results.options;
  std::string html = element("h1", kTitle) + "<dl class=\"facts\">\n";
  const auto fact = [&html](const char* name, const std::string& text) {
    html += "<div>\n" + element("dt", name) + element("dd", text) + "</div>\n";
  };
  fact("Data",
       "Iris and Breast Cancer (wdbc), four fifths of the rows to train on, one fifth to test");
  fact("Models", network_title("iris") + " and " + network_title("wdbc") +
                     ", ReLU, biases, softmax cross-entropy");
  fact("Training", fmt::format("batches of {}, learning rate 0.001, {} epochs, {}", kStudyBatch,
                               options.epochs, counted(options.seeds, "seed")));
  fact("Machine", page.machine);
  html += "</dl>\n";
  if (options.epochs >= kEpochsToJudge) return html;
  return html + lead(fmt::format(
                    "A quick look: in fewer than {} epochs tremor is mostly the fall of the loss "
                    "itself, and a period of ten cannot be told from noise.",
                    kEpochsToJudge));
}

std::string forms_section() {
  return "<h2>Three forms of one rule</h2>\n" +
         lead(
             "MicroAdam keeps the last ten gradients, each reduced to its largest elements, and "
             "an error feedback of a few bits per parameter for what was left out; Adam's "
             "moments are sums over this window.") +
         "<dl class=\"definitions\">\n" + element("dt", "correct form") +
         element("dd",
                 "A gradient of age r weighs beta^r; sums are divided by the mass of the window, "
                 "1 − beta^min(t, 10). Error feedback rounds stochastically in buckets of 64.") +
         element("dt", "published form") +
         element("dd",
                 "As in the paper: sums over ten steps are divided by 1 − beta^t, as if they went "
                 "back to the beginning.") +
         element("dt", "the study's form") +
         element("dd",
                 "As in the study's own code: a gradient made at step s weighs beta^(s mod 10) for "
                 "as long as it is in the window, whatever its age, and the bias is corrected "
                 "twice. Error feedback rounds to nearest, one bucket for each tensor. Values and "
                 "bounds are kept in bf16 (there fp32), and the density is the one asked for "
                 "(there it was always about 1 %).") +
         "</dl>\n";
}

std::string figure_section(const StudyFigure& figure, const StudyResults& results) {
  std::vector<StudyChart> charts =
      figure.number < 8 ? figure_charts(figure, results) : tremor_charts(figure, results);
  const std::vector<StudyChart> more = figure.number == 5   ? density_charts(figure, results)
                                       : figure.number == 9 ? period_charts(results)
                                                            : std::vector<StudyChart>();
  charts.insert(charts.end(), more.begin(), more.end());
  return element("h2", fmt::format("Figure {}: {}", figure.number, figure.title)) +
         lead(figure.question) + charts_grid(charts) + numbers_table(figure, results);
}

std::string cost_section(const StudyResults& results) {
  std::string html =
      "<h2>Figure 8: what the study could not measure</h2>\n" +
      lead(
          "Memory and time at sizes where they matter: density 1 %, 4-bit error feedback in "
          "buckets of 64, a window of ten.") +
      charts_grid(cost_charts(results.costs)) + "<div class=\"scroll\"><table>\n<thead>\n<tr>\n" +
      cells_of("th",
               {"parameters", "rule", "bytes of state per parameter", "ms per step", "quartiles"}) +
      "</tr>\n</thead>\n<tbody>\n";
  for (const CostPoint& point : results.costs) {
    html += "<tr>\n" +
            cells_of("td", {human_count(static_cast<double>(point.parameters)), point.rule,
                            fixed(point.bytes_per_parameter(), 2),
                            significant(1e3 * point.seconds_per_step, 3),
                            significant(1e3 * point.lower_quartile, 3) + " to " +
                                significant(1e3 * point.upper_quartile, 3)}) +
            "</tr>\n";
  }
  return html + "</tbody>\n</table></div>\n";
}

std::string definitions() {
  std::string html = "<h2>Definitions</h2>\n<dl class=\"definitions\">\n";
  const auto entry = [&html](const char* name, const char* text) {
    html += element("dt", name) + element("dd", text);
  };
  entry(
      "loss at the end",
      "Geometric mean of the training loss over the last 20 epochs, none counted as less than "
      "6e-08. Of all numbers the table gives the median over seeds, and the smallest and largest.");
  entry("tremor",
        "How far an epoch's loss is from the geometric mean of the ten epochs on each side of it, "
        "on average, after the first tenth of training and while the loss is above 6e-08.");
  entry("turn, length",
        "Over all weights: length of the difference of two consecutive updates, and of an update.");
  entry("period 10 / noise",
        "Geometric means by step modulo ten, largest over smallest, in the second half of "
        "training; noise is the largest such ratio at periods 7, 9, 11 and 13.");
  entry("autocorrelation",
        "Of the tremor from epoch to epoch, with the same batches in every epoch.");
  return html + "</dl>\n";
}

}  // namespace

std::string render_study(const StudyPage& page, const StudyResults& results) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n";
  html += element("title", kTitle) + page_style() + study_style() + "</head>\n<body>\n<main>\n";
  html += opening(page, results) + forms_section();
  for (const StudyFigure& figure : results.figures) {
    if (figure.number > 8) html += cost_section(results);
    html += figure_section(figure, results);
  }
  html +=
      "<h2>How to repeat</h2>\n<pre><code>" + escape_markup(page.command) + "</code></pre>\n" +
      lead(
          "All numbers but the seconds come out the same again, whatever the number of threads. "
          "The CSV files beside this page hold them: numbers.csv those of every run, the others "
          "the curves as median, smallest and largest over the seeds (_median, _min, _max).");
  return html + definitions() + "</main>\n</body>\n</html>\n";
}

}  // namespace tritgrad
