// How the processes of a job find each other.
#pragma once

#include <memory>
#include <string>

#include "models/training/train.h"

namespace CLI {
class App;
}

namespace tritgrad {

// Checks the options of ranks in train.parallel, which a resumed run has from its checkpoint, and
// fills in the micro-batches: one for each rank unless they are given. Connects to the other ranks,
// whose object must outlive train.ranks; `timeout` is what --dp-timeout says. Null without --dp.
// Throws Error for contradictions, and where a launcher started several processes that would all do
// the same.
std::unique_ptr<Communicator> connect(const CLI::App& command, const std::string& timeout,
                                      TrainOptions& train);

}  // namespace tritgrad
