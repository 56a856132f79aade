// Ranks by MPI. ranks.cpp is the only file that knows MPI; no_ranks.cpp stands in for it in builds
// without.
#pragma once

#include <memory>

#include "optim/parallel/communicator.h"

namespace tritgrad {

// See connect_ranks().
std::unique_ptr<Communicator> connect_mpi(double timeout, const GiveUp& give_up);
// Ends the job if it is connected.
void abort_mpi();

}  // namespace tritgrad
