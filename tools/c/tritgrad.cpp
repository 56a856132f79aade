// The functions of tritgrad.h: each calls the library and turns what it throws into a code and a
// sentence.
#include "tools/c/tritgrad.h"

#include <algorithm>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/check.h"
#include "engine/data/npy_dataset.h"
#include "engine/data/npy_writer.h"
#include "engine/data/open_dataset.h"
#include "engine/data/split.h"
#include "engine/files/checkpoint.h"
#include "engine/memory/parallel.h"
#include "engine/text.h"
#include "engine/version.h"
#include "models/training/predict.h"
#include "models/training/train.h"
#include "tools/c/spec_json.h"
#include "tools/cli/common_options.h"

namespace {

using namespace tritgrad;
using Json = nlohmann::ordered_json;

std::string& last_error() {
  thread_local std::string sentence;
  return sentence;
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Returns body(), or what `failed` makes of the status if it throws; the sentence is kept.
template <typename Body, typename Failed>
auto guarded(const Body& body, const Failed& failed) noexcept {
  tg_status status = TG_INVALID;
  try {
    return body();
  } catch (const std::bad_alloc&) {
    status = TG_MEMORY;
    last_error() = "there is not enough memory";
  } catch (const Interrupted& error) {
    status = TG_INTERRUPTED;
    last_error() = error.what();
  } catch (const Diverged& error) {
    status = TG_DIVERGED;
    last_error() = error.what();
  } catch (const std::exception& error) {
    last_error() = error.what();
  }
  return failed(status);
}

template <typename Body>
tg_status status_of(const Body& body) noexcept {
  return guarded(
      [&] {
        body();
        return TG_OK;
      },
      [](tg_status status) { return status; });
}

template <typename Body>
auto pointer_of(const Body& body) noexcept {
  return guarded(body, [](tg_status) { return decltype(body())(nullptr); });
}

template <typename Handle>
Handle& of(Handle* handle, const char* what) {
  check(handle != nullptr, what, ": NULL found, a handle expected");
  return *handle;
}

// The bytes of a .npy file with a copy of these numbers.
std::string npy_of(const void* values, tg_type type, std::int64_t rows, std::int64_t features,
                   const ImageShape& image) {
  check(values != nullptr || rows == 0 || features == 0, "values: NULL found, numbers expected");
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  check(rows >= 0 && features >= 0 && rows <= kMost && features <= kMost &&
            (features == 0 || rows <= kMost / features),
        "rows ", rows, ", features ", features, ": sizes from 0 on expected, and at most ", kMost,
        " numbers");
  const char* descr = type == TG_FLOAT32 ? "<f4" : type == TG_FLOAT64 ? "<f8" : "|u1";
  const std::int64_t bytes = type == TG_FLOAT32 ? 4 : type == TG_FLOAT64 ? 8 : 1;
  check(type == TG_FLOAT32 || type == TG_FLOAT64 || type == TG_UINT8, "type ",
        static_cast<int>(type), " found, TG_FLOAT32, TG_FLOAT64 or TG_UINT8 expected");
  const bool grey = type == TG_UINT8 && image.size() == features && image.channels == 1;
  const std::vector<std::int64_t> extents =
      grey ? std::vector{rows, image.height, image.width} : std::vector{rows, features};
  return write_npy(
      descr, bytes, extents,
      {static_cast<const char*>(values), static_cast<std::size_t>(rows * features * bytes)});
}

ImageShape image_of(const Json& options, std::int64_t features) {
  if (!options.contains("image")) return {};
  const auto sides = options.at("image").get<std::vector<std::int64_t>>();
  check(sides.size() == 3 && *std::min_element(sides.begin(), sides.end()) > 0 &&
            sides[0] * sides[1] * sides[2] == features,
        "image: ", options.at("image").dump(), " found, [height, width, channels] of ", features,
        " numbers a row expected");
  return {sides[0], sides[1], sides[2]};
}

Json parse_options(const char* text, std::initializer_list<const char*> keys) {
  if (text == nullptr) return Json::object();
  const Json json = Json::parse(text, nullptr, false);
  check(json.is_object(),
        "options: no JSON object found; give NULL or one such as {\"name\": "
        "\"digits\"}");
  const std::vector<std::string> known(keys.begin(), keys.end());
  for (const auto& [key, value] : json.items()) {
    check(std::find(known.begin(), known.end(), key) != known.end(), "options: unknown key '",
          printable(key), "'", did_you_mean(key, known));
  }
  return json;
}

// Calls classes by names: a label is the number of one.
void name_classes(Dataset& dataset, const std::vector<std::string>& names) {
  check(std::ssize(names) == dataset.classes(), "class_names: ", names.size(),
        " names found, but the labels are of ", dataset.classes(), " classes");
  std::vector<std::string> named;
  for (const std::string& number : dataset.class_names) {
    const std::optional<double> at = parse_number(number);
    check(at && *at >= 0.0 && *at < static_cast<double>(names.size()), "labels: ", number,
          " found, numbers of the ", names.size(), " class names expected, from 0 on");
    named.push_back(names[static_cast<std::size_t>(*at)]);
  }
  dataset.class_names = std::move(named);
}

// What a model knows of its columns, for rows whose labels are all 0.
TableSchema schema_of_rows(const SavedRun& saved) {
  TableSchema schema = saved.table();
  schema.class_names = {"0"};
  return schema;
}

Json remarks_of(const Dataset& dataset) {
  Json remarks = Json::array();
  for (const auto* sentences : {&dataset.remarks.warnings, &dataset.remarks.notes}) {
    for (const std::string& sentence : *sentences) remarks.push_back(sentence);
  }
  return remarks;
}

}  // namespace

struct tg_data {
  Dataset dataset;
  TrainSpec spec;  // how it was read
  std::string description;
};

struct tg_run : tritgrad::Observer {
  TrainOptions options;
  Split split;
  std::optional<TrainingRun> run;
  std::string result;
  tg_observer observer = nullptr;
  void* context = nullptr;
  std::int64_t total_steps = 0;
  bool ended = false;  // by the observer, after the last step

  void begin(const RunStart& start) override { total_steps = start.total_steps; }
  void step(const StepReport& report) override {
    if (observer == nullptr) return;
    const tg_progress progress{report.step, total_steps, report.epoch, report.loss};
    ended = observer(&progress, context) != 0;
  }
  bool interrupted() override { return std::exchange(ended, false); }

  // Makes steps until the run or the epoch is over, or one.
  template <typename Until>
  void advance(const Until& until) {
    check(result.empty(), "run: it is finished; make a new one");
    while (!run->is_over()) {
      run->step();
      if (until()) return;
    }
  }
};

struct tg_model {
  std::vector<std::byte> bytes;  // of the checkpoint, where it is not a file
  SavedRun saved;
  LoadedModel loaded = load_model(saved);
  TableSchema schema = schema_of_rows(saved);
  std::string description = {};
};

int tg_abi_version(void) { return TG_ABI_VERSION; }
const char* tg_version(void) { return version(); }
const char* tg_error(void) { return last_error().c_str(); }

tg_status tg_set_threads(int threads) {
  return status_of([&] {
    check(threads >= 0 && threads <= 1024, "threads: ", threads, " found, 0 to 1024 expected");
    set_thread_count(threads);
  });
}

const char* tg_recipes(void) {
  return pointer_of([]() -> const char* {
    static const std::string text = [] {
      Json all = Json::array();
      for (const std::string& name : recipe_names()) {
        all.push_back({{"name", name}, {"about", load_recipe(name).summary}});
      }
      return dumped(all);
    }();
    return text.c_str();
  });
}

tg_data* tg_data_from_arrays(const void* values, tg_type type, int64_t rows, int64_t features,
                             const int64_t* labels, const char* options) {
  return pointer_of([&] {
    const Json json = parse_options(options, {"name", "class_names", "image"});
    const ImageShape image = image_of(json, features);
    const std::string x = npy_of(values, type, rows, features, image);
    check(labels != nullptr, "labels: NULL found, a number for each row expected");
    const std::string y = write_npy({rows}, std::span(labels, static_cast<std::size_t>(rows)));
    const NpyPair pair{x, y, "values", "labels"};
    auto data = std::make_unique<tg_data>();
    data->spec.data = json.value("name", "arrays");
    data->dataset = parse_npy_pairs({&pair, 1}, data->spec.data);
    if (json.contains("image")) data->dataset.image = image;
    if (json.contains("class_names")) {
      name_classes(data->dataset, json.at("class_names").get<std::vector<std::string>>());
    }
    return data.release();
  });
}

tg_data* tg_data_open(const char* spec) {
  return pointer_of([&] {
    check(spec != nullptr, "spec: NULL found, JSON such as {\"data\": \"iris\"} expected");
    auto data = std::make_unique<tg_data>();
    CommonOptions options;
    static_cast<TrainSpec&>(options.train) = data_spec_from_json(spec);
    data->dataset = open_data(options);
    data->spec = options.train;
    return data.release();
  });
}

const char* tg_data_describe(tg_data* data) {
  return pointer_of([&]() -> const char* {
    const Dataset& dataset = of(data, "data").dataset;
    data->description = dumped({{"name", dataset.name},
                                {"rows", dataset.rows},
                                {"features", dataset.features},
                                {"classes", dataset.class_names},
                                {"feature_names", dataset.feature_names},
                                {"remarks", remarks_of(dataset)}});
    return data->description.c_str();
  });
}

void tg_data_close(tg_data* data) { delete data; }

tg_run* tg_run_new(const tg_data* data, const char* spec) {
  return pointer_of([&] {
    const Dataset& dataset = of(data, "data").dataset;
    auto run = std::make_unique<tg_run>();
    TrainOptions& options = run->options;
    options = run_spec_from_json(spec == nullptr ? "{}" : spec);
    visit_data(static_cast<TrainSpec&>(options), [&](const Field& field, auto& value) {
      visit_data(data->spec, [&](const Field& other, const auto& given) {
        if constexpr (std::is_same_v<std::decay_t<decltype(given)>,
                                     std::decay_t<decltype(value)>>) {
          if (std::string_view(field.key) == other.key) value = given;
        }
      });
    });
    options.observer = run.get();
    options = with_defaults(options, dataset);
    run->split = split_of(dataset, options, 0);
    run->run.emplace(dataset, run->split, options);
    return run.release();
  });
}

tg_status tg_run_observe(tg_run* run, tg_observer observer, void* context) {
  return status_of([&] {
    of(run, "run").observer = observer;
    run->context = context;
  });
}

tg_status tg_run_step(tg_run* run) {
  return status_of([&] { of(run, "run").advance([] { return true; }); });
}

tg_status tg_run_epoch(tg_run* run) {
  return status_of([&] {
    const std::size_t before = of(run, "run").run->curve().size();
    run->advance([&] { return run->run->curve().size() > before; });
  });
}

tg_status tg_run_all(tg_run* run) {
  return status_of([&] { of(run, "run").advance([] { return false; }); });
}

int tg_run_is_over(const tg_run* run) { return run != nullptr && run->run->is_over() ? 1 : 0; }

tg_status tg_run_save(tg_run* run, const char* path) {
  return status_of([&] {
    check(path != nullptr, "path: NULL found, the name of a file expected");
    of(run, "run").run->save_copy(path);
  });
}

const char* tg_run_finish(tg_run* run) {
  return pointer_of([&]() -> const char* {
    if (of(run, "run").result.empty()) run->result = to_json(run->run->finish());
    return run->result.c_str();
  });
}

void tg_run_close(tg_run* run) { delete run; }

tg_model* tg_model_open(const char* path) {
  return pointer_of([&] {
    check(path != nullptr, "path: NULL found, the name of a file expected");
    return new tg_model{{}, SavedRun(path)};
  });
}

tg_model* tg_model_from_bytes(const void* bytes, size_t size) {
  return pointer_of([&] {
    check(bytes != nullptr, "bytes: NULL found, those of a checkpoint expected");
    // The heap keeps them where the checkpoint's arrays point to, however few they are.
    std::vector<std::byte> copy(static_cast<const std::byte*>(bytes),
                                static_cast<const std::byte*>(bytes) + size);
    const std::span<const std::byte> kept(copy);
    return new tg_model{std::move(copy), SavedRun(kept, "bytes")};
  });
}

const char* tg_model_describe(tg_model* model) {
  return pointer_of([&]() -> const char* {
    const SavedModel& plan = of(model, "model").loaded.plan;
    const ImageShape& image = plan.input.image;
    Json json{{"model", plan.model},
              {"recipe", plan.recipe.name},
              {"inputs", plan.input.features},
              {"classes", model->saved.class_names()},
              {"feature_names", model->schema.feature_names()},
              {"steps", model->saved.step()},
              {"weights_sha256", weights_sha256(model->loaded.model->parameters())}};
    if (image.size() > 0) json["image"] = {image.height, image.width, image.channels};
    model->description = dumped(json);
    return model->description.c_str();
  });
}

tg_status tg_model_predict(tg_model* model, const void* values, tg_type type, int64_t rows,
                           int64_t features, int64_t* classes, float* probabilities,
                           float* logits) {
  return status_of([&] {
    const SavedModel& plan = of(model, "model").loaded.plan;
    check(features == plan.input.features, "features: ", features, " found, the model has ",
          plan.input.features, " inputs");
    if (rows == 0) return;
    const std::string x = npy_of(values, type, rows, features, plan.input.image);
    const std::vector<std::int64_t> zeros(static_cast<std::size_t>(rows));
    const std::string y = write_npy({rows}, zeros);
    const NpyPair pair{x, y, "values", "labels"};
    Dataset dataset = parse_npy_pairs({&pair, 1}, "values", &model->schema);
    dataset.image = plan.input.image;
    const std::vector<float> all = predict_logits(model->loaded, dataset, unsplit(dataset).train);
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* y_row = all.data() + row * plan.outputs;
      if (classes != nullptr) {
        classes[row] = std::max_element(y_row, y_row + plan.outputs) - y_row;
      }
      if (probabilities != nullptr) {
        softmax_of_row(y_row, plan.outputs, probabilities + row * plan.outputs);
      }
    }
    if (logits != nullptr) std::copy(all.begin(), all.end(), logits);
  });
}

void tg_model_close(tg_model* model) { delete model; }
