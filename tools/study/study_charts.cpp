#include "tools/study/study_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/report/svg.h"

namespace tritgrad {
namespace {

// Points of a drawn curve: a plot is about 420 units wide.
constexpr std::size_t kDrawnPoints = 140;

// Neighbouring epochs of all seeds together: the line is the median of their medians, the band all
// of them, so that a spike of one epoch in one seed is seen. The marker is the loss at the end.
LineSeries drawn_curve(const StudyLine& line, const StudyResults& results) {
  LineSeries series{line.name, line.style, {}, {}, {}, {}};
  const double last =
      median(results.numbers(line.variant, [](const CurveNumbers& n) { return n.end_loss; }));
  // Where the loss cannot be resolved, the line's own end says more than a mark.
  if (!(last <= kResolvedLoss)) series.mark = last;
  const std::vector<Spread> epochs = epoch_spreads(results.of(line.variant));
  const std::size_t count = epochs.size();
  const std::size_t width = std::max<std::size_t>(1, (count + kDrawnPoints - 1) / kDrawnPoints);
  for (std::size_t begin = 0; begin < count; begin += width) {
    std::vector<double> medians;
    const std::size_t end = std::min(begin + width, count);
    double low = epochs[begin].low, high = epochs[begin].high;
    for (std::size_t i = begin; i < end; ++i) {
      medians.push_back(epochs[i].median);
      low = std::min(low, epochs[i].low);
      high = std::max(high, epochs[i].high);
    }
    series.x.push_back(0.5 * static_cast<double>(begin + 1 + end));
    series.y.push_back(median(medians));
    series.lower.push_back(low);
    series.upper.push_back(high);
  }
  return series;
}

// All values of a data set's panels, which their axes must reach.
std::vector<double> reach_of(const std::vector<LineChart>& charts, const StudyFigure& figure,
                             const std::string& data) {
  std::vector<double> reach;
  for (std::size_t i = 0; i < charts.size(); ++i) {
    if (figure.panels[i].data != data) continue;
    for (const LineSeries& series : charts[i].series) {
      reach.insert(reach.end(), series.lower.begin(), series.lower.end());
      reach.insert(reach.end(), series.upper.begin(), series.upper.end());
      if (series.mark) reach.push_back(*series.mark);
    }
  }
  return reach;
}

// A point whose band spans all seeds.
void add_point(LineSeries& series, double x, const Spread& spread) {
  series.x.push_back(x);
  series.y.push_back(spread.median);
  series.lower.push_back(spread.low);
  series.upper.push_back(spread.high);
}

using NumberOf = double (*)(const CurveNumbers&);

StudyChart density_chart(const StudyFigure& figure, const StudyResults& results,
                         const std::string& title, const std::string& label, NumberOf number_of) {
  LineChart chart{title,
                  {"share of the parameters that a row really keeps, %", true, {}},
                  {label, true, {}},
                  {}};
  for (const StudyPanel& panel : figure.panels) {
    LineSeries series{panel.title(), static_cast<int>(chart.series.size()) + 1, {}, {}, {}, {}};
    for (const StudyLine& line : panel.lines) {
      const double x = 100.0 * kept_share(line.variant);
      if (!series.x.empty() && series.x.back() == x) continue;  // the same run
      add_point(series, x, spread_of(results.numbers(line.variant, number_of)));
    }
    chart.series.push_back(std::move(series));
  }
  return {title, "Median over seeds; the band spans all seeds.", render_svg(chart)};
}

}  // namespace

std::vector<StudyChart> figure_charts(const StudyFigure& figure, const StudyResults& results) {
  std::vector<LineChart> charts;
  for (const StudyPanel& panel : figure.panels) {
    LineChart chart{panel.title(), {"epoch", false, {}}, {"training loss", true, {}}, {}};
    for (const StudyLine& line : panel.lines) {
      chart.series.push_back(drawn_curve(line, results));
    }
    charts.push_back(std::move(chart));
  }
  std::vector<StudyChart> drawn;
  for (std::size_t i = 0; i < charts.size(); ++i) {
    LineChart chart = charts[i];
    chart.y.reach = reach_of(charts, figure, figure.panels[i].data);
    drawn.push_back({chart.title,
                     fmt::format("{} network; logarithmic loss. Lines are medians over seeds and "
                                 "neighbouring epochs, bands all of their values, markers the loss "
                                 "at the end.",
                                 network_title(figure.panels[i].data)),
                     render_svg(chart)});
  }
  return drawn;
}

std::vector<StudyChart> density_charts(const StudyFigure& figure, const StudyResults& results) {
  return {density_chart(figure, results, "Tremor by density", "tremor, %",
                        [](const CurveNumbers& n) { return 100.0 * std::expm1(n.roughness); }),
          density_chart(figure, results, "Loss at the end by density", "training loss",
                        [](const CurveNumbers& n) { return std::max(n.end_loss, kResolvedLoss); })};
}

std::vector<StudyChart> tremor_charts(const StudyFigure& figure, const StudyResults& results) {
  std::vector<StudyChart> charts;
  for (const StudyPanel& panel : figure.panels) {
    LineChart chart{
        panel.title(), {"lag in epochs"}, {"autocorrelation of the loss", false, {-0.2, 1.0}}, {}};
    for (const StudyLine& line : panel.lines) {
      LineSeries series{line.name, line.style, {}, {}, {}, {}};
      double lag = 0.0;
      for (const Spread& spread : autocorrelation_spreads(results.of(line.variant))) {
        add_point(series, ++lag, spread);
      }
      chart.series.push_back(std::move(series));
    }
    charts.push_back({chart.title,
                      "Autocorrelation of what is left of ln(loss) without its trend, the same "
                      "batches in every epoch; median over seeds, the band spans all seeds.",
                      render_svg(chart)});
  }
  return charts;
}

std::vector<StudyLine> period_lines() {
  std::vector<StudyLine> lines;
  for (const std::string data : {"iris", "wdbc"}) {
    for (const Form form : {Form::kAdam, Form::kCorrected, Form::kStudy}) {
      const Variant variant =
          form == Form::kAdam ? Variant{data, form, 1.0, 0} : Variant{data, form, 0.01, 4};
      const int style = form == Form::kAdam ? 0 : form == Form::kCorrected ? 1 : 2;
      lines.push_back({form_name(form), style, variant});
    }
  }
  return lines;
}

std::vector<StudyChart> period_charts(const StudyResults& results) {
  std::vector<StudyChart> charts;
  for (const std::string data : {"iris", "wdbc"}) {
    LineChart chart{data_title(data) + ": difference of consecutive updates",
                    {"step modulo ten", false, {}},
                    {"relative to its mean", false, {0.9, 1.1}},
                    {}};
    for (const StudyLine& line : period_lines()) {
      if (line.variant.data != data) continue;
      LineSeries series{line.name, line.style, {}, {}, {}, {}};
      double phase = 0.0;
      for (const Spread& spread : turn_spreads(results.of(line.variant))) {
        add_point(series, phase++, spread);
      }
      chart.series.push_back(std::move(series));
    }
    charts.push_back(
        {chart.title,
         "Geometric mean of |update − update before| over the second half of training; "
         "median over seeds, the band spans all seeds.",
         render_svg(chart)});
  }
  return charts;
}

std::vector<StudyChart> cost_charts(const std::vector<CostPoint>& costs) {
  LineChart bytes{"State by number of parameters",
                  {"million parameters", true, {}},
                  {"bytes of state per parameter", false, {0.0}},
                  {}};
  LineChart time{"Time of a step by number of parameters",
                 {"million parameters", true, {}},
                 {"milliseconds per step", true, {}},
                 {}};
  for (const CostPoint& point : costs) {
    for (LineChart* chart : {&bytes, &time}) {
      auto series = std::find_if(chart->series.begin(), chart->series.end(),
                                 [&](const LineSeries& s) { return s.name == point.rule; });
      if (series == chart->series.end()) {
        chart->series.push_back(
            {point.rule, static_cast<int>(chart->series.size()), {}, {}, {}, {}});
        series = chart->series.end() - 1;
      }
      series->x.push_back(1e-6 * static_cast<double>(point.parameters));
      if (chart == &bytes) {
        series->y.push_back(point.bytes_per_parameter());
        continue;
      }
      series->y.push_back(1e3 * point.seconds_per_step);
      series->lower.push_back(1e3 * point.lower_quartile);
      series->upper.push_back(1e3 * point.upper_quartile);
    }
  }
  const int samples = costs.empty() ? 0 : costs.front().samples;
  return {
      {bytes.title, "Optimizer state only; weights and gradients are the same for both.",
       render_svg(bytes)},
      {time.title,
       fmt::format("One update of one matrix; median and quartiles of {} samples, both rules in "
                   "turn. A sample is a step, of small matrices the mean of many.",
                   samples),
       render_svg(time)}};
}

std::vector<std::pair<std::string, std::string>> study_pictures(const StudyResults& results) {
  std::vector<std::pair<std::string, std::string>> files;
  const auto add = [&](int figure, const std::vector<StudyChart>& charts) {
    const std::string prefix = fmt::format("figure{}-", figure);
    std::int64_t number = std::count_if(files.begin(), files.end(), [&](const auto& file) {
      return file.first.starts_with(prefix);
    });
    for (const StudyChart& chart : charts) {
      files.emplace_back(fmt::format("{}{}.svg", prefix, ++number), chart.svg);
    }
  };
  for (const StudyFigure& figure : results.figures) {
    if (figure.number < 8) add(figure.number, figure_charts(figure, results));
    if (figure.number == 5) add(figure.number, density_charts(figure, results));
    if (figure.number < 8) continue;
    add(figure.number, tremor_charts(figure, results));
    add(figure.number, period_charts(results));
  }
  add(8, cost_charts(results.costs));
  return files;
}

}  // namespace tritgrad
