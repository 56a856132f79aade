// Defaults by the data, and a model for each fold.
#include "engine/check.h"
#include "models/training/train.h"

namespace tritgrad {

TrainOptions with_defaults(TrainOptions options, const Dataset& dataset) {
  TrainSpec& spec = options;
  spec = with_defaults(spec, dataset);
  return options;
}

RunResult train(const Dataset& dataset, const TrainOptions& asked) {
  const TrainOptions options = with_defaults(asked, dataset);
  if (options.folds == 0) return train(dataset, split_of(dataset, options, 0), options);
  check(options.save.empty() && options.resume.empty(),
        "--folds trains one model per fold; --save, --resume and --log need a single one");
  std::vector<RunResult> folds;
  for (int fold = 0; fold < options.folds; ++fold) {
    folds.push_back(train(dataset, split_of(dataset, options, fold), options));
  }
  return mean_of_folds(folds);
}

}  // namespace tritgrad
