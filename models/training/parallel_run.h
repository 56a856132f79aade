// Training by several processes: agreement of the ranks, their recipe, their traffic.
#pragma once

#include <memory>

#include "engine/data/dataset.h"
#include "models/networks/model.h"
#include "models/training/run_result.h"
#include "models/training/train.h"

namespace tritgrad {

// Returns the recipe as the optimizer of a data-parallel run follows it: see joint_group(). The
// exchanges decide about gradients.
Recipe joint_recipe(const ParallelSpec& spec, Recipe recipe);

// Returns the recipe as the job trains it, alone or joint. Throws Error unless all ranks have the
// same program, data, options and recipe, and where the recipe does not go with micro-batches.
Recipe recipe_of_job(const Dataset& dataset, const TrainOptions& options, const Recipe& alone);

// Returns null without ranks.
std::unique_ptr<DataParallel> make_parallel(const TrainOptions& options, const Recipe& recipe,
                                            Model& model, Optimizer& optimizer);

Traffic traffic_of(const DataParallel& parallel, const TrainOptions& options, const Recipe& recipe,
                   const ParameterStore& store);

}  // namespace tritgrad
