// Data-parallel training as the command line sees it: options, agreement of the ranks, traffic.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "engine/data/dataset.h"
#include "models/networks/model.h"
#include "tools/run_result.h"
#include "tools/train.h"

namespace tritgrad {

// Empty: not given.
struct ParallelOptions {
  std::string method;
  bool majority = false;
  std::string warmup;
  std::string scale;
  std::string timeout;
};

void add_parallel_options(CLI::App& command, ParallelOptions& options);

// Reads the options into train.parallel, which a resumed run has from its checkpoint, and fills in
// the micro-batches: one for each rank unless `parts_are_given`. Connects to the other ranks, whose
// object must outlive train.ranks. Null without --dp. Throws Error for contradictions, and where a
// launcher started several processes that would all do the same.
std::unique_ptr<Communicator> connect(const ParallelOptions& options, bool parts_are_given,
                                      TrainOptions& train);

// Throws Error unless all ranks have the same program, data, options and recipe.
void check_same_job(const Dataset& dataset, const TrainOptions& options, const Recipe& recipe);

// The recipe as the optimizer of a data-parallel run follows it: see joint_group(). Gradients are
// the lanes' business.
Recipe joint_recipe(const ParallelSpec& spec, Recipe recipe);

// Null without ranks.
std::unique_ptr<DataParallel> make_parallel(const TrainOptions& options, const Recipe& recipe,
                                            Model& model, Optimizer& optimizer);

Traffic traffic_of(const DataParallel& parallel, const TrainOptions& options, const Recipe& recipe,
                   const ParameterStore& store);

}  // namespace tritgrad
