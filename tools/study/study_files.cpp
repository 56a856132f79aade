#include "tools/study/study_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <set>
#include <span>

#include "engine/text.h"
#include "tools/report/number_text.h"
#include "tools/report/page.h"
#include "tools/report/statistics.h"
#include "tools/report/system_info.h"

namespace tritgrad {
namespace {

// A drawn curve has at most this many points: a plot is about 420 units wide.
constexpr std::ptrdiff_t kDrawnPoints = 140;

// In shorter runs, oscillation and periods cannot be told from the fall of the loss: ten of the
// longest periods (ten epochs of Breast Cancer) on each side of a smoothing window.
constexpr int kEpochsToJudge = 200;

// A number of a run is a column of numbers.csv and, if it has a heading, of the page's tables.
struct NumberColumn {
  const char* name;
  const char* heading;
  double scale;  // of the tables
  double (*of)(const CurveNumbers& numbers);
};

// A count of BucketCount, which CSV files hold as a number like all others.
template <auto kCount>
double bucket_count(const CurveNumbers& numbers) {
  return static_cast<double>(numbers.buckets.*kCount);
}

constexpr NumberColumn kEndLoss = {"end_loss", "loss at the end", 1.0,
                                   [](const CurveNumbers& n) { return n.end_loss; }};
constexpr NumberColumn kOscillation = {"loss_oscillation", "loss oscillation, %", 100.0,
                                       [](const CurveNumbers& n) { return n.oscillation; }};
constexpr NumberColumn kNumberColumns[] = {
    kEndLoss,
    kOscillation,
    {"test_accuracy", "test accuracy, %", 100.0,
     [](const CurveNumbers& n) { return n.test_accuracy; }},
    {"update_length", "update length", 1.0, [](const CurveNumbers& n) { return n.update_length; }},
    {"update_change_period_10", "update change, period 10", 1.0,
     [](const CurveNumbers& n) { return n.update_change.ratio; }},
    {"update_change_noise", "update change, noise", 1.0,
     [](const CurveNumbers& n) { return n.update_change.control; }},
    {"beat_epochs", "", 1.0, [](const CurveNumbers& n) { return static_cast<double>(n.beat); }},
    {"beat_correlation", "", 1.0, [](const CurveNumbers& n) { return n.beat_correlation; }},
    {"beat_noise", "", 1.0, [](const CurveNumbers& n) { return n.beat_noise; }},
    {"buckets", "", 1.0, bucket_count<&BucketCount::buckets>},
    {"buckets_zero_at_start", "", 1.0, bucket_count<&BucketCount::zero_at_start>},
    {"buckets_written", "", 1.0, bucket_count<&BucketCount::written>},
    {"buckets_constant", "", 1.0, bucket_count<&BucketCount::constant>},
    {"buckets_zero", "", 1.0, bucket_count<&BucketCount::zero>}};

Spread milliseconds(const CostPoint& point) {
  return {1e3 * point.seconds.median, 1e3 * point.seconds.low, 1e3 * point.seconds.high};
}

using ValuesOf = std::vector<double> (*)(const Curve& curve);

void add_point(LineSeries& series, double x, const Spread& y) {
  series.x.push_back(x);
  series.y.push_back(y.median);
  series.lower.push_back(y.low);
  series.upper.push_back(y.high);
}

// Adds a plot like `like` for each panel of a figure. A line's values are at x = first, first + 1
// and so on.
void add_panels(std::vector<StudyPlot>& plots, const StudyFigure& figure,
                const StudyResults& results, const StudyPlot& like, double first,
                ValuesOf values_of) {
  for (const StudyPanel& panel : figure.panels) {
    StudyPlot& plot = plots.emplace_back(like);
    plot.chart.title = panel.title() + like.chart.title;
    for (const StudyLine& line : panel.lines) {
      std::vector<std::vector<double>> by_x;  // and seed
      for (const Curve& curve : results.of(line.variant)) {
        const std::vector<double> values = values_of(curve);
        by_x.resize(values.size());
        for (std::size_t i = 0; i < values.size(); ++i) by_x[i].push_back(values[i]);
      }
      LineSeries& series = plot.chart.series.emplace_back();
      series.name = line.name;
      series.style = line.style;
      double x = first;
      for (const std::vector<double>& values : by_x) add_point(series, x++, spread_of(values));
      plot.keys.push_back(variant_key(line.variant));
    }
  }
}

std::vector<StudyPlot> loss_plots(const StudyFigure& figure, const StudyResults& results) {
  std::vector<StudyPlot> plots;
  add_panels(plots, figure, results,
             {{"", {"epoch", false, {}}, {"training loss", true, {}}, {}},
              "",
              fmt::format("figure{}", figure.number),
              "epoch",
              figure.number != 9},
             1.0, [](const Curve& curve) { return curve.epoch_loss; });
  std::map<std::string, std::vector<double>> reach;  // by data set
  for (std::size_t i = 0; i < plots.size(); ++i) {
    const StudyPanel& panel = figure.panels[i];
    plots[i].caption = network_title(panel.data) +
                       " network; logarithmic loss. Lines are medians over seeds and neighbouring "
                       "epochs, bands all of their values, markers the loss at the end.";
    std::vector<double>& values = reach[panel.data];
    for (std::size_t j = 0; j < panel.lines.size(); ++j) {
      LineSeries& series = plots[i].chart.series[j];
      const double end = median(results.numbers(panel.lines[j].variant, kEndLoss.of));
      // If the loss cannot be resolved, the line's own end says more than a mark.
      if (!(end <= kResolvedLoss)) values.push_back(series.mark.emplace(end));
      values.insert(values.end(), series.lower.begin(), series.lower.end());
      values.insert(values.end(), series.upper.begin(), series.upper.end());
    }
  }
  for (std::size_t i = 0; i < plots.size(); ++i) {
    plots[i].chart.y.reach = reach[figure.panels[i].data];
  }
  return plots;
}

// A number by the share of the parameters that is really kept, one series for each panel. Values
// below `smallest` are drawn there.
StudyPlot density_plot(const StudyFigure& figure, const StudyResults& results,
                       const std::string& title, const NumberColumn& number, double smallest) {
  StudyPlot plot{{title,
                  {"share of the parameters that a row really keeps, %", true, {}},
                  {number.heading, true, {}},
                  {}},
                 "Median over seeds; the band spans all seeds."};
  for (const StudyPanel& panel : figure.panels) {
    LineSeries& series = plot.chart.series.emplace_back();
    series.name = panel.title();
    series.style = static_cast<int>(plot.chart.series.size());
    for (const StudyLine& line : panel.lines) {
      const double x = 100.0 * kept_share(line.variant);
      if (!series.x.empty() && series.x.back() == x) continue;  // the same run
      std::vector<double> values = results.numbers(line.variant, number.of);
      for (double& value : values) value = std::max(number.scale * value, smallest);
      add_point(series, x, spread_of(std::move(values)));
    }
  }
  return plot;
}

std::vector<StudyPlot> cost_plots(const std::vector<CostPoint>& costs) {
  const Axis parameters{"million parameters", true, {}};
  const std::vector<LineSeries> rules = {{"Adam", 0, {}, {}, {}, {}},
                                         {"MicroAdam", 1, {}, {}, {}, {}}};
  StudyPlot bytes{{"State by number of parameters",
                   parameters,
                   {"bytes of state per parameter", false, {0.0}},
                   rules},
                  "Optimizer state only; weights and gradients are the same for both."};
  StudyPlot time{{"Time of a step by number of parameters",
                  parameters,
                  {"milliseconds per step", true, {}},
                  rules},
                 "One update of one matrix; median and quartiles of the samples, both rules in "
                 "turn. A sample is a step, of small matrices the mean of many."};
  for (const CostPoint& point : costs) {
    const std::size_t rule = point.rule == rules[0].name ? 0 : 1;
    const double x = 1e-6 * static_cast<double>(point.parameters);
    const double each = point.bytes_per_parameter();
    add_point(bytes.chart.series[rule], x, {each, each, each});
    add_point(time.chart.series[rule], x, milliseconds(point));
  }
  return {bytes, time};
}

// Neighbouring points of a long curve are drawn as one: the line is the median of their medians,
// the band all of them, so that a spike of one epoch in one seed is seen.
LineSeries drawn_series(const LineSeries& full) {
  LineSeries drawn{full.name, full.style, {}, {}, {}, {}, full.mark};
  const auto count = static_cast<std::ptrdiff_t>(full.x.size());
  const std::ptrdiff_t width =
      std::max<std::ptrdiff_t>(1, (count + kDrawnPoints - 1) / kDrawnPoints);
  for (std::ptrdiff_t begin = 0; begin < count; begin += width) {
    const std::ptrdiff_t end = std::min(begin + width, count);
    const double low = *std::min_element(full.lower.begin() + begin, full.lower.begin() + end);
    const double high = *std::max_element(full.upper.begin() + begin, full.upper.begin() + end);
    const double x = 0.5 * (*(full.x.begin() + begin) + *(full.x.begin() + end - 1));
    add_point(drawn, x, {median({full.y.begin() + begin, full.y.begin() + end}), low, high});
  }
  if (drawn.lower == drawn.upper) drawn.lower = drawn.upper = {};
  return drawn;
}

// Names the pictures FIGURE-1 and so on.
Pictures pictures_of(int figure, const std::vector<StudyPlot>& plots) {
  Pictures pictures;
  for (const StudyPlot& plot : plots) {
    if (!plot.drawn) continue;
    LineChart chart = plot.chart;
    for (LineSeries& series : chart.series) series = drawn_series(series);
    pictures.figures.push_back({fmt::format("figure{}-{}", figure, pictures.figures.size() + 1),
                                chart.title + ". " + plot.caption, render_svg(chart)});
  }
  return pictures;
}

std::string cell(double value) {
  return std::isfinite(value) ? fmt::format("{:.9g}", value) : std::string();
}

// The series of all plots that belong into one file, each once; shorter ones end in empty cells.
std::string curves_csv(const std::vector<StudyPlot>& plots, const std::string& name) {
  std::set<std::string> seen;
  std::vector<const LineSeries*> columns;
  const LineSeries* longest = nullptr;
  std::string csv;
  for (const StudyPlot& plot : plots) {
    if (plot.csv != name) continue;
    if (csv.empty()) csv = plot.index;
    for (std::size_t i = 0; i < plot.keys.size(); ++i) {
      const LineSeries* series = &plot.chart.series[i];
      if (!seen.insert(plot.keys[i]).second) continue;
      columns.push_back(series);
      csv += fmt::format(",{0}_median,{0}_min,{0}_max", plot.keys[i]);
      if (longest == nullptr || series->x.size() > longest->x.size()) longest = series;
    }
  }
  csv += "\n";
  for (std::size_t row = 0; row < longest->x.size(); ++row) {
    csv += cell(longest->x[row]);
    for (const LineSeries* s : columns) {
      csv += row < s->x.size() ? fmt::format(",{},{},{}", cell(s->y[row]), cell(s->lower[row]),
                                             cell(s->upper[row]))
                               : ",,,";
    }
    csv += "\n";
  }
  return csv;
}

std::string cost_csv(const std::vector<CostPoint>& costs) {
  std::string text =
      "parameters,rule,state_bytes,ledger_bytes,bytes_per_parameter,seconds_per_step,"
      "lower_quartile,upper_quartile,samples\n";
  for (const CostPoint& point : costs) {
    text += fmt::format("{},{},{},{},{},{},{},{},{}\n", point.parameters, point.rule,
                        point.state_bytes, point.ledger_bytes, cell(point.bytes_per_parameter()),
                        cell(point.seconds.median), cell(point.seconds.low),
                        cell(point.seconds.high), point.samples);
  }
  return text;
}

std::string numbers_csv(const StudyResults& results) {
  std::string text = "variant,seed,kept_share";
  for (const NumberColumn& number : kNumberColumns) text += std::string(",") + number.name;
  for (const Variant& variant : all_variants(results.figures)) {
    int seed = 0;
    for (const Curve& curve : results.of(variant)) {
      text += fmt::format("\n{},{},{}", variant_key(variant), ++seed, cell(kept_share(variant)));
      for (const NumberColumn& number : kNumberColumns)
        text += "," + cell(number.of(curve.numbers));
    }
  }
  return text + "\n";
}

// The median over seeds, and where there are several the smallest and the largest:
// "0.0137 (0.0120 to 0.0151)".
std::string spread_text(const Spread& spread, bool several) {
  const std::string middle = significant(spread.median, 3);
  if (!several) return middle;
  return fmt::format("{} ({} to {})", middle, significant(spread.low, 3),
                     significant(spread.high, 3));
}

PageTable numbers_table(const StudyFigure& figure, const StudyResults& results) {
  PageTable table{{"curve"}, {}, "", "Numbers of every curve"};
  for (const NumberColumn& number : kNumberColumns) {
    if (*number.heading != '\0') table.heads.emplace_back(number.heading);
  }
  for (const StudyPanel& panel : figure.panels) {
    for (const StudyLine& line : panel.lines) {
      std::vector<std::string>& row = table.rows.emplace_back();
      row.push_back(panel.title() + ": " + line.name);
      for (const NumberColumn& number : kNumberColumns) {
        if (*number.heading == '\0') continue;
        std::vector<double> values = results.numbers(line.variant, number.of);
        for (double& value : values) value *= number.scale;
        row.push_back(spread_text(spread_of(values), values.size() > 1));
      }
    }
  }
  return table;
}

PageTable cost_table(const std::vector<CostPoint>& costs) {
  PageTable table{{"parameters", "rule", "bytes of state per parameter", "ms per step (quartiles)"},
                  {},
                  "",
                  ""};
  for (const CostPoint& point : costs) {
    table.rows.push_back({human_count(static_cast<double>(point.parameters)), point.rule,
                          fixed(point.bytes_per_parameter(), 2),
                          spread_text(milliseconds(point), true)});
  }
  return table;
}

Facts facts(const StudyOptions& options) {
  return {
      {{"Data",
        "Iris and Breast Cancer (wdbc), four fifths of the rows to train on, one fifth to test"},
       {"Models", network_title("iris") + " and " + network_title("wdbc") +
                      ", ReLU, biases, softmax cross-entropy"},
       {"Training", fmt::format("batches of {}, learning rate 0.001, {} epochs, {}", kStudyBatch,
                                options.epochs, counted(options.seeds, "seed"))},
       {"Machine", describe_machine()}}};
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  for (double& value : values) {
    if (!std::isfinite(value)) value = std::numeric_limits<double>::infinity();
  }
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {median(values), *low, *high};
}

std::vector<StudyPlot> figure_plots(const StudyFigure& figure, const StudyResults& results) {
  std::vector<StudyPlot> plots = loss_plots(figure, results);
  if (figure.number == 5) {
    plots.push_back(
        density_plot(figure, results, "Loss oscillation by density", kOscillation, -INFINITY));
    plots.push_back(
        density_plot(figure, results, "Loss at the end by density", kEndLoss, kResolvedLoss));
  }
  if (figure.number != 9) return plots;
  add_panels(plots, figure, results,
             {{"", {"lag in epochs"}, {"autocorrelation of the loss", false, {-0.2, 1.0}}, {}},
              "Autocorrelation of what is left of ln(loss) without its trend, the same batches in "
              "every epoch; median over seeds, the band spans all seeds.",
              "autocorrelation",
              "lag"},
             1.0, [](const Curve& curve) { return curve.numbers.autocorrelation; });
  // The variants of Figure 6 are those whose updates are compared.
  for (const StudyFigure& other : results.figures) {
    if (other.number != 6) continue;
    add_panels(plots, other, results,
               {{": difference of consecutive updates",
                 {"step modulo ten"},
                 {"relative to its mean", false, {0.9, 1.1}},
                 {}},
                "Geometric mean of |update − update before| over the second half of training; "
                "median over seeds, the band spans all seeds.",
                "period",
                "step_modulo_10"},
               0.0, [](const Curve& curve) {
                 const auto& profile = curve.numbers.update_change_profile;
                 return std::vector<double>(profile.begin(), profile.end());
               });
  }
  return plots;
}

StudyFiles study_files(const StudyResults& results, const std::string& command) {
  StudyFiles files, pictures;
  Page page{"MicroAdam on Iris and Breast Cancer", {facts(results.options)}};
  const auto add = [&](int number, const std::string& title, const std::string& question,
                       const std::vector<StudyPlot>& plots, const PageTable& table) {
    page.blocks.push_back(Heading{2, fmt::format("Figure {}: {}", number, title)});
    page.blocks.push_back(Paragraph{question});
    Pictures drawn = pictures_of(number, plots);
    for (const Figure& picture : drawn.figures) {
      pictures.emplace_back(picture.name + ".svg", picture.svg);
    }
    page.blocks.push_back(std::move(drawn));
    page.blocks.push_back(table);
    std::set<std::string> names;
    for (const StudyPlot& plot : plots) names.insert(plot.csv);
    for (const std::string& name : names) {
      if (!name.empty()) files.emplace_back(name + ".csv", curves_csv(plots, name));
    }
  };
  if (results.options.epochs < kEpochsToJudge) {
    page.blocks.push_back(Paragraph{fmt::format(
        "A quick look: in fewer than {} epochs the loss oscillation is mostly the fall of the loss "
        "itself, and a period of ten cannot be told from noise.",
        kEpochsToJudge)});
  }
  for (const StudyFigure& figure : results.figures) {
    if (figure.number > 8) {
      add(8, "what the study could not measure",
          "Memory and time at sizes where they matter: density 1 %, 4-bit error feedback in "
          "buckets of 64, a window of ten.",
          cost_plots(results.costs), cost_table(results.costs));
    }
    add(figure.number, figure.title, figure.question, figure_plots(figure, results),
        numbers_table(figure, results));
  }
  files.emplace_back("figure8.csv", cost_csv(results.costs));
  files.emplace_back("numbers.csv", numbers_csv(results));
  files.insert(files.end(), pictures.begin(), pictures.end());
  page.blocks.push_back(Heading{2, "How to repeat"});
  page.blocks.push_back(Code{command});
  page.blocks.push_back(Paragraph{
      "All numbers but the seconds come out the same again, whatever the number of threads. The "
      "CSV files beside this page hold them: numbers.csv those of every run, the others the curves "
      "as median, smallest and largest over the seeds (_median, _min, _max). docs/STUDY.md defines "
      "the forms of the rule and the numbers."});
  files.emplace_back("index.html", render_html(page));
  return files;
}

void write_study(const std::filesystem::path& folder, const StudyFiles& files,
                 const FileCalls& calls) {
  std::deque<AtomicFile> written;
  for (const auto& [name, text] : files) {
    written.emplace_back(folder / name, calls).write(std::as_bytes(std::span(text)));
  }
  for (AtomicFile& file : written) file.sync();
  // If the page is a link, the file that it names is removed, and comes again in its place.
  std::error_code error;
  std::filesystem::remove(std::filesystem::weakly_canonical(folder / files.back().first), error);
  for (AtomicFile& file : written) file.commit();
}

}  // namespace tritgrad
