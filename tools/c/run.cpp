// The functions of tritgrad.h on training runs.
#include <memory>
#include <utility>

#include "tools/c/border.h"
#include "tools/c/checked_rows.h"
#include "tools/c/handles.h"
#include "tools/c/spec_json.h"

using namespace tritgrad;

void tg_run::begin(const RunStart& start) { total_steps = start.total_steps; }

void tg_run::step(const StepReport& report) {
  if (observer == nullptr) return;
  const tg_progress progress{report.step, total_steps, report.epoch, report.loss};
  ended = observer(&progress, context) != 0;
}

bool tg_run::interrupted() { return std::exchange(ended, false); }

namespace {

// Makes steps until the run is over, or until one after which `enough` says so.
template <typename Enough>
void advance(tg_run& run, const Enough& enough) {
  check(run.result.empty(), "run: it is finished; make a new one");
  while (!run.run->is_over()) {
    run.run->step();
    if (enough()) return;
  }
}

}  // namespace

tg_run* tg_run_new(const tg_data* data, const char* spec) {
  return pointer_of([&] {
    const Dataset& dataset = of(data, "data").dataset;
    auto run = std::make_unique<tg_run>();
    TrainOptions& options = run->options;
    options = run_spec_from_json(spec == nullptr ? "{}" : spec);
    run->data = data;
    adopt_data_spec(data->spec, options);
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
  return status_of([&] { advance(of(run, "run"), [] { return true; }); });
}

tg_status tg_run_epoch(tg_run* run) {
  return status_of([&] {
    const std::size_t before = of(run, "run").run->curve().size();
    advance(*run, [&] { return run->run->curve().size() > before; });
  });
}

tg_status tg_run_all(tg_run* run) {
  return status_of([&] { advance(of(run, "run"), [] { return false; }); });
}

int tg_run_is_over(const tg_run* run) { return run != nullptr && run->run->is_over() ? 1 : 0; }

tg_status tg_run_save(tg_run* run, const char* path) {
  return status_of([&] {
    text_of(path, "path", "the name of a file");
    of(run, "run").run->save_copy(path);
  });
}

tg_model* tg_run_model(tg_run* run) {
  return pointer_of([&] {
    auto model = std::unique_ptr<tg_model>(model_of_bytes(of(run, "run").run->checkpoint_bytes()));
    if (run->data->is_of_arrays) {
      model->rows = rows_held_back(run->data->dataset, run->split);
      model->rows_have_labels = true;
    }
    return model.release();
  });
}

const char* tg_run_finish(tg_run* run) {
  return pointer_of([&]() -> const char* {
    if (of(run, "run").result.empty()) run->result = to_json(run->run->finish());
    return run->result.c_str();
  });
}

void tg_run_close(tg_run* run) { delete run; }
