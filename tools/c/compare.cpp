// The function of tritgrad.h that compares recipes.
#include <string>
#include <utility>

#include "tools/c/border.h"
#include "tools/c/handles.h"
#include "tools/c/spec_json.h"
#include "tools/compare/record.h"
#include "tools/compare/run_comparison.h"
#include "tools/report/system_info.h"

namespace tritgrad {
namespace {

// Tells an observer in C the runs of a comparison, and asks it after each step whether to go on.
class ComparisonObserver final : public Observer {
 public:
  ComparisonObserver(tg_observer observer, void* context, std::int64_t runs)
      : observer_(observer), context_(context), runs_(runs) {}

  void step(const StepReport& report) override { tell(report.epoch, report.loss); }
  bool interrupted() override { return std::exchange(ended_, false); }

  void run_is_over(const RunResult& run) {
    ++done_;
    tell(run.epochs, run.train_loss);
    check_not_ended();
  }

 private:
  void tell(std::int64_t epoch, double loss) {
    if (observer_ == nullptr) return;
    const tg_progress progress{done_, runs_, epoch, loss};
    ended_ = observer_(&progress, context_) != 0;
  }
  void check_not_ended() const {
    if (ended_) throw Interrupted(concat("interrupted after ", done_, " of ", runs_, " runs"));
  }

  tg_observer observer_;
  void* context_;
  std::int64_t runs_, done_ = 0;
  bool ended_ = false;
};

}  // namespace
}  // namespace tritgrad

using namespace tritgrad;

const char* tg_compare(const tg_data* data, const char* spec, tg_observer observer, void* context) {
  return pointer_of([&]() -> const char* {
    thread_local std::string text;
    const Dataset& dataset = of(data, "data").dataset;
    auto [options, cache] = comparison_spec_from_json(spec == nullptr ? "{}" : spec);
    adopt_data_spec(data->spec, options.train);
    check_comparison(dataset, options);
    ComparisonObserver watcher(observer, context, run_count(options));
    options.train.observer = &watcher;
    ComparisonRecord record =
        run_comparison(dataset, options, RunCache(cache),
                       [&](const FinishedRun& finished) { watcher.run_is_over(finished.run); });
    record.dataset = dataset_line(dataset, options.train);
    text = to_json({record}, describe_machine());
    return text.c_str();
  });
}
