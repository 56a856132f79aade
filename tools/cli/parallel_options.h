// How the processes of a job work together, as the command line asks for it.
#pragma once

#include <memory>
#include <string>

#include "models/training/train.h"

namespace CLI {
class App;
}

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

}  // namespace tritgrad
