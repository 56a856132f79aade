#include "tools/study/study_page.h"

#include <fmt/format.h>

#include <cmath>

#include "tools/report/number_text.h"
#include "tools/report/page.h"
#include "tools/report/svg.h"
#include "tools/study/claims.h"
#include "tools/study/study_charts.h"
#include "tools/study/tremor.h"

namespace tritgrad {
namespace {

constexpr const char* kTitle = "MicroAdam on Iris and Breast Cancer";

std::string study_style() {
  return "<style>.lead{max-width:56rem}.claims{max-width:60rem;padding-left:1.2rem}"
         ".claims li{margin:.35rem 0}h3{font-size:1rem;margin:0 0 .25rem}h3.part{margin:1.75rem 0 "
         ".5rem}"
         "details.numbers{margin-top:1rem}details.numbers summary{font-size:.95rem;"
         "font-weight:600}</style>\n";
}

std::string claims_list(const std::vector<std::string>& claims) {
  std::string html = "<ul class=\"claims\">\n";
  for (const std::string& claim : claims) html += element("li", claim);
  return html + "</ul>\n";
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
  std::string html = element("h1", kTitle) +
                     element("p", study_headline(results), " class=\"headline\"") +
                     "<dl class=\"facts\">\n";
  const auto fact = [&html](const char* name, const std::string& text) {
    html += "<div>\n" + element("dt", name) + element("dd", text) + "</div>\n";
  };
  fact("Data",
       "Iris and Breast Cancer (wdbc), four fifths of the rows to train on, one fifth to test");
  fact("Models", network_title("iris") + " and " + network_title("wdbc") +
                     ", ReLU, biases, softmax cross-entropy");
  fact("Training",
       fmt::format("batches of {}, learning rate 0.001, {} epochs, {} seed{}", kStudyBatch,
                   options.epochs, options.seeds, options.seeds == 1 ? "" : "s"));
  fact("Machine", page.machine);
  html += "</dl>\n";
  if (options.epochs >= kEpochsToJudge) return html;
  return html +
         element(
             "p",
             fmt::format("A quick look: in fewer than {} epochs tremor is mostly the fall of the "
                         "loss itself, and a period of ten cannot be told from noise. Run the "
                         "study at its own length before believing a sentence about either.",
                         kEpochsToJudge),
             " class=\"lead\"");
}

std::string forms_section() {
  return element("h2", "Three forms of one rule") +
         element(
             "p",
             "MicroAdam keeps the last ten gradients, each reduced to its largest elements, and "
             "an error feedback of a few bits per parameter for what was left out; Adam's "
             "moments are sums over this window.",
             " class=\"lead\"") +
         "<dl class=\"definitions\">\n" + element("dt", "correct form") +
         element("dd",
                 "A gradient of age r weighs beta^r; sums are divided by the mass of the window, "
                 "1 − beta^min(t, 10). Error feedback rounds stochastically in buckets of 64.") +
         element("dt", "published form") +
         element("dd",
                 "As in the paper: sums over ten steps are divided by 1 − beta^t, as if they went "
                 "back to the beginning.") +
         element("dt", "the study's form") +
         element(
             "dd",
             "As in the study's own code: a gradient made at step s weighs beta^(s mod 10) for "
             "as long as it is in the window, whatever its age, and the bias is corrected "
             "twice. Error feedback rounds to nearest, one bucket for each tensor. Two things "
             "are ours: values and bounds are kept in bf16 (there fp32), and the density is the "
             "one asked for (there it was always about 1 %).") +
         "</dl>\n";
}

std::string figure_section(const StudyFigure& figure, const StudyResults& results) {
  std::string html = element("h2", fmt::format("Figure {}: {}", figure.number, figure.title)) +
                     element("p", figure.question, " class=\"lead\"") +
                     claims_list(figure_claims(figure, results));
  std::vector<StudyChart> charts = figure_charts(figure, results);
  if (figure.number == 5) {
    for (StudyChart& chart : density_charts(figure, results)) charts.push_back(std::move(chart));
  }
  return html + charts_grid(charts) + numbers_table(figure, results);
}

std::string tremor_section(const StudyFigure& figure, const StudyResults& results) {
  return element("h2", fmt::format("Figure {}: {}", figure.number, figure.title)) +
         element("p",
                 "The study's curves tremble, and it could not say why. Its code differs from the "
                 "published rule in that a gradient's weight depends on the step in which it was "
                 "made: the newest counts fully in one step and 0.9⁹ = 0.39 of that nine steps "
                 "later. What follows separates what this does to a step from what it does to the "
                 "loss of an epoch. " +
                     figure.question,
                 " class=\"lead\"") +
         "<h3 class=\"part\">Epoch by epoch</h3>\n" + claims_list(tremor_claims(figure, results)) +
         charts_grid(tremor_charts(figure, results)) +
         "<h3 class=\"part\">The published form</h3>\n" +
         element("p",
                 fmt::format("Its ages are right. But its sums over ten gradients are "
                             "divided by 1 − beta^t, which goes to 1, and not by 1 − beta^10; "
                             "from the same window its updates become (1 − 0.9¹⁰) / "
                             "√(1 − 0.999¹⁰) = {} times as long as those of the correct form. So "
                             "the correct form stands beside it with that many times the learning "
                             "rate, from the first step on.",
                             significant(published_rate(), 2)),
                 " class=\"lead\"") +
         claims_list(published_claims(figure, results)) +
         "<h3 class=\"part\">Step by step (1 %, 4-bit feedback, rows shuffled anew in every "
         "epoch)</h3>\n" +
         claims_list(period_claims(results)) + charts_grid(period_charts(results)) +
         numbers_table(figure, results);
}

std::string cost_section(const StudyResults& results) {
  return element("h2", "Figure 8: what the study could not measure") +
         element("p",
                 "Memory and time at sizes where they matter: density 1 %, 4-bit error feedback in "
                 "buckets of 64, a window of ten.",
                 " class=\"lead\"") +
         claims_list(cost_claims(results.costs)) + charts_grid(cost_charts(results.costs));
}

std::string definitions() {
  std::string html = "<h2>Definitions</h2>\n<dl class=\"definitions\">\n";
  const auto entry = [&html](const char* name, const char* text) {
    html += element("dt", name) + element("dd", text);
  };
  entry("loss", "Mean over the training rows of an epoch, each at the moment it was trained on.");
  entry("loss at the end",
        "Geometric mean of this loss over the last 20 epochs (all of a shorter run), none counted "
        "as less than 6e-08: curves tremble, and their last epoch is a matter of chance. Of a "
        "curve the median over seeds is told, compared and marked in the pictures; of less than "
        "6e-08 the mark is where the line ends.");
  entry("largest rise", "Largest increase of this loss from one epoch to the next, whole run.");
  entry("tremor",
        "How far an epoch's loss is from the geometric mean of the ten epochs on each side of it, "
        "on average, after the first tenth of training and while the loss is above 6e-08, the "
        "spacing of fp32 numbers below 1.");
  entry("turn, length",
        "Over all weights: length of the difference of two consecutive updates, and of an update; "
        "update length is its geometric mean over the epochs in which tremor is measured.");
  entry(
      "period 10 / noise",
      "Geometric means by step modulo ten, largest over smallest, in the second half of training "
      "(the last 20,000 steps at most), the place of a step in its epoch divided out; noise is the "
      "largest such ratio at periods 7, 9, 11 and 13. A seed has a period of ten where the ratio "
      "exceeds noise^1.5; seeds are counted one by one, the numbers beside are their medians.");
  entry(
      "autocorrelation",
      "Of the tremor from epoch to epoch. A single peak may be any oscillation, so it is averaged "
      "over one to four times the period; noise is three standard errors. A seed has the period "
      "where it exceeds its noise; the numbers are medians over seeds.");
  entry("better, worse",
        "Said only if every seed agrees and the medians differ by more than a tenth: less than 0.9 "
        "or more than 1.1 times. Within a tenth they are about the same; otherwise seeds disagree "
        "and there is no clear difference.");
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
    if (figure.number < 8) html += figure_section(figure, results);
  }
  html += cost_section(results);
  for (const StudyFigure& figure : results.figures) {
    if (figure.number > 8) html += tremor_section(figure, results);
  }
  html +=
      "<h2>How to repeat</h2>\n<pre><code>" + escape_markup(page.command) + "</code></pre>\n" +
      element("p",
              "All numbers but the seconds come out the same again, whatever the number of "
              "threads. They stand in the CSV files beside this page: numbers.csv has those of "
              "every run, one line for each variant and seed; figure3.csv to figure7.csv and "
              "figure9.csv the losses of every epoch, autocorrelation.csv and period.csv the "
              "curves of Figure 9, each as median, smallest and largest over the seeds (_median, "
              "_min, _max); figure8.csv bytes and seconds.");
  return html + definitions() + "</main>\n</body>\n</html>\n";
}

}  // namespace tritgrad
