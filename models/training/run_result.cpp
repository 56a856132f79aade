#include "models/training/run_result.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "engine/check.h"
#include "engine/data/standardizer.h"
#include "engine/files/hash.h"
#include "engine/files/json_whole-inl.h"

namespace tritgrad {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The fields of a result and of its parts, listed once: visitors write them to JSON and read them
// back. The list of a part serves constant objects and others.
template <typename T, typename Part>
concept Is = std::same_as<std::remove_const_t<T>, Part>;

template <typename Visitor, Is<RunResult> Run>
void fields(Visitor& visit, Run& run) {
  visit("data", run.data);
  visit("model", run.model);
  visit("recipe", run.recipe);
  if (visit.present("overrides", !run.overrides.empty())) visit("overrides", run.overrides);
  visit("compute", run.compute);
  visit("lr", run.lr);
  visit("seed", run.seed);
  visit("epochs", run.epochs);
  visit("batch", run.batch);
  if (visit.present("resize", run.resize > 0)) visit("resize", run.resize);
  if (visit.present("augment", !run.augment.empty())) visit("augment", run.augment);
  if (visit.present("label_smoothing", run.label_smoothing > 0.0)) {
    visit("label_smoothing", run.label_smoothing);
  }
  if (visit.present("imbalance", run.imbalance != "none")) visit("imbalance", run.imbalance);
  if (visit.present("pixels", run.pixels != "linear")) visit("pixels", run.pixels);
  visit("steps", run.steps);
  visit("seconds", run.seconds);
  visit("time", run.time);
  visit("parameters", run.parameters);
  visit("train_loss", run.train_loss);
  if (visit.present("metric", run.metric != Metric::kAccuracy)) visit("metric", run.metric);
  visit.metric = run.metric;
  visit(score_key("val", run.metric), run.val_score);
  visit(score_key("test", run.metric), run.test_score);
  if (run.metric == Metric::kRmse) {
    visit("test_mae", run.test_mae);
    visit("test_r2", run.test_r2);
  }
  if (run.metric == Metric::kBitsPerByte) visit("test_nats_per_token", run.test_nats);
  if (visit.present("folds", run.folds > 0)) {
    visit("folds", run.folds);
    visit(score_key("test", run.metric) + "_std", run.test_score_std);
  }
  if (visit.present("confusion", run.confusion.has_value())) {
    visit("balanced_accuracy", run.balanced_accuracy);
    visit("confusion", run.confusion);
  }
  visit("zero_fraction", run.zero_fraction);
  visit("flips_per_step", run.flips_per_step);
  visit("movable_fraction", run.movable_fraction);
  visit("skipped_updates", run.skipped_updates);
  if (visit.present("warnings", true)) visit("warnings", run.warnings);
  if (visit.present("table", !run.table.empty())) visit("table", run.table);
  if (visit.present("remarks", !run.remarks.empty())) visit("remarks", run.remarks);
  visit("bytes_per_parameter", run.bytes_per_parameter);
  visit("peak_live_bytes", run.peak_live_bytes);
  if (visit.present("data_bytes", run.data_bytes > 0)) visit("data_bytes", run.data_bytes);
  visit("weights_sha256", run.weights_sha256);
  if (visit.present("optimizer_sha256", true)) {
    visit("optimizer_sha256", run.optimizer_sha256);
  }
  visit("curve", run.curve);
  if (visit.present("traffic", run.traffic.has_value())) visit("traffic", run.traffic);
  if (visit.present("diverged", !run.diverged.empty())) visit("diverged", run.diverged);
  if (visit.present("machine", !run.machine.empty())) visit("machine", run.machine);
  if (visit.present("cached", run.cached)) visit("cached", run.cached);
}

template <typename Visitor, Is<TimeSpent> Time>
void fields(Visitor& visit, Time& time) {
  visit("preparing", time.preparing);
  visit("batches", time.batches);
  visit("steps", time.steps);
  visit("evaluation", time.evaluation);
  if (visit.present("saving", time.saving > 0.0)) visit("saving", time.saving);
}

template <typename Visitor, Is<BytesPerParameter> Bytes>
void fields(Visitor& visit, Bytes& bytes) {
  Bytes::visit(bytes,
               [&](Category category, auto& value) { visit(category_name(category), value); });
  visit.derived("total", bytes.total());
}

template <typename Visitor, Is<Confusion> Table>
void fields(Visitor& visit, Table& confusion) {
  visit("classes", confusion.classes);
  visit("counts", confusion.counts);
}

template <typename Visitor, Is<Traffic> Numbers>
void fields(Visitor& visit, Numbers& traffic) {
  visit("method", traffic.method);
  visit("ranks", traffic.ranks);
  visit("micro_batches", traffic.micro_batches);
  visit("bytes_per_step", traffic.bytes_per_step);
  visit("forecast_per_step", traffic.forecast_per_step);
  visit("last_step_bytes", traffic.last_step_bytes);
  visit("last_step_forecast", traffic.last_step_forecast);
  visit("error_feedback_bytes", traffic.error_feedback_bytes);
  visit("last_step_bytes_per_parameter", traffic.last_step_bytes_per_parameter);
  visit("warmup_steps", traffic.warmup_steps);
}

template <typename Visitor, Is<EpochPoint> Point>
void fields(Visitor& visit, Point& point) {
  visit("epoch", point.epoch);
  visit("train_loss", point.train_loss);
  visit(score_key("train", visit.metric), point.train_score);
  visit(score_key("val", visit.metric), point.val_score);
}

struct Writer {
  OrderedJson json = OrderedJson::object();
  Metric metric = Metric::kAccuracy;  // of the scores of parts

  bool present(const char*, bool is_present) { return is_present; }
  void derived(const char* key, double value) { json[key] = json_of(value); }
  template <typename T>
  void operator()(const std::string& key, const T& value) {
    json[key] = json_of(value);
  }

 private:
  template <typename T>
  OrderedJson json_of(const T& value) const {
    if constexpr (requires(Writer part) { fields(part, value); }) {
      Writer part{OrderedJson::object(), metric};
      fields(part, value);
      return part.json;
    } else {
      return value;
    }
  }
  OrderedJson json_of(Metric value) const { return key_name(value); }
  OrderedJson json_of(double value) const {
    return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
  }
  template <typename T>
  OrderedJson json_of(const std::optional<T>& value) const {
    return value ? json_of(*value) : OrderedJson(nullptr);
  }
  OrderedJson json_of(const std::vector<EpochPoint>& curve) const {
    OrderedJson points = OrderedJson::array();
    for (const EpochPoint& point : curve) points.push_back(json_of(point));
    return points;
  }
};

struct Reader {
  const OrderedJson& json;
  Metric metric = Metric::kAccuracy;  // of the scores of parts

  bool present(const char* key, bool) { return json.contains(key); }
  void derived(const char*, double) {}
  template <typename T>
  void operator()(const std::string& key, T& value) {
    check(json.is_object() && json.contains(key), "run result: '", key, "' is missing");
    try {
      read(json.at(key), value);
    } catch (const OrderedJson::exception&) {
      fail("run result: '", key, "' has the wrong type");
    }
  }

 private:
  template <typename T>
  void read(const OrderedJson& found, T& value) const {
    if constexpr (requires(Reader part) { fields(part, value); }) {
      Reader part{found, metric};
      fields(part, value);
    } else if constexpr (std::integral<T> && !std::same_as<T, bool>) {
      value = whole_number<T>(found);
    } else {
      value = found.get<T>();
    }
  }
  void read(const OrderedJson& found, Metric& value) const {
    const std::optional<Metric> known = find_metric(found.get<std::string>());
    check(known.has_value(), "run result: 'metric' is '", found.get<std::string>(),
          "', expected accuracy, rmse or bits_per_byte; it was written by a newer version");
    value = *known;
  }
  void read(const OrderedJson& found, double& value) const {
    value = found.is_null() ? std::numeric_limits<double>::quiet_NaN() : found.get<double>();
  }
  template <typename T>
  void read(const OrderedJson& found, std::optional<T>& value) const {
    if (found.is_null()) {
      value.reset();
    } else {
      read(found, value.emplace());
    }
  }
  void read(const OrderedJson& found, std::vector<EpochPoint>& curve) const {
    check(found.is_array(), "run result: 'curve' is no list of epochs");
    curve.clear();
    for (const OrderedJson& point : found) read(point, curve.emplace_back());
  }
};

void add_new(std::vector<std::string>& said, const std::vector<std::string>& more) {
  for (const std::string& sentence : more) {
    if (std::find(said.begin(), said.end(), sentence) == said.end()) said.push_back(sentence);
  }
}

// Returns the mean of a number that some folds may lack; nothing then.
std::optional<double> mean_if_all(const std::vector<RunResult>& folds,
                                  std::optional<double> RunResult::*number) {
  double sum = 0.0;
  for (const RunResult& fold : folds) {
    if (!(fold.*number)) return std::nullopt;
    sum += *(fold.*number);
  }
  return sum / static_cast<double>(folds.size());
}

}  // namespace

RunResult mean_of_folds(const std::vector<RunResult>& folds) {
  RunResult joined = folds.front();
  const double n = static_cast<double>(folds.size());
  const auto mean = [&](auto&& get) {
    double sum = 0.0;
    for (const RunResult& fold : folds) sum += get(fold);
    return sum / n;
  };
  joined.folds = static_cast<int>(folds.size());
  joined.test_score = mean([](const RunResult& r) { return *r.test_score; });
  const double variance =
      mean([&](const RunResult& r) { return std::pow(*r.test_score - *joined.test_score, 2); });
  joined.test_score_std = std::sqrt(variance * n / (n - 1.0));
  if (joined.confusion) {
    joined.balanced_accuracy = mean([](const RunResult& r) { return *r.balanced_accuracy; });
    joined.confusion = Confusion(joined.confusion->classes);
    for (const RunResult& fold : folds) joined.confusion->add(*fold.confusion);
  }
  joined.test_r2 = mean_if_all(folds, &RunResult::test_r2);
  for (double RunResult::*number : {&RunResult::train_loss, &RunResult::flips_per_step}) {
    joined.*number = mean([&](const RunResult& r) { return r.*number; });
  }
  for (std::optional<double> RunResult::*number :
       {&RunResult::zero_fraction, &RunResult::val_score, &RunResult::movable_fraction,
        &RunResult::test_mae}) {
    // Folds lack a number together, but for movable_fraction where no weight had an update.
    if (joined.*number) {
      joined.*number = mean([&](const RunResult& r) { return (r.*number).value_or(1.0); });
    }
  }
  joined.seconds = 0.0;
  joined.time = {};
  joined.steps = 0;
  joined.skipped_updates = 0;
  joined.warnings.clear();
  std::string weights, optimizers;
  for (const RunResult& fold : folds) {
    joined.seconds += fold.seconds;
    joined.time += fold.time;
    joined.steps += fold.steps;
    joined.skipped_updates += fold.skipped_updates;
    add_new(joined.warnings, fold.warnings);
    joined.peak_live_bytes = std::max(joined.peak_live_bytes, fold.peak_live_bytes);
    joined.data_bytes = std::max(joined.data_bytes, fold.data_bytes);
    weights += fold.weights_sha256;
    optimizers += fold.optimizer_sha256;
  }
  joined.weights_sha256 = sha256_hex(std::as_bytes(std::span(weights)));
  joined.optimizer_sha256 = sha256_hex(std::as_bytes(std::span(optimizers)));
  for (std::size_t epoch = 0; epoch < joined.curve.size(); ++epoch) {
    EpochPoint& point = joined.curve[epoch];
    point.train_loss = mean([&](const RunResult& r) { return r.curve[epoch].train_loss; });
    point.train_score = mean([&](const RunResult& r) { return r.curve[epoch].train_score; });
    if (point.val_score) {
      point.val_score = mean([&](const RunResult& r) { return *r.curve[epoch].val_score; });
    }
  }
  return joined;
}

std::string pixel_words(const RunResult& run) {
  return run.pixels == to_text(PixelScale::kSquareRoot) ? "square roots of pixels" : "";
}

std::string label_words(const RunResult& run) {
  return run.label_smoothing > 0 ? concat("labels smoothed by ", run.label_smoothing) : "";
}

std::string to_json(const RunResult& run) {
  Writer writer;
  fields(writer, run);
  // File names may hold any bytes; JSON text may not.
  return writer.json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

RunResult run_from_json(const std::string& text) {
  const OrderedJson json = OrderedJson::parse(text, nullptr, false);
  check(json.is_object(), "run result: the text is no JSON object");
  Reader reader{json};
  RunResult run;
  fields(reader, run);
  return run;
}

}  // namespace tritgrad
