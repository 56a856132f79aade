// Stands in for ranks.cpp in builds without MPI: one process trains, more are refused.
#include "engine/check.h"
#include "optim/parallel/mpi/ranks.h"

namespace tritgrad {

std::unique_ptr<Communicator> connect_mpi(double /*timeout*/, const GiveUp& /*give_up*/) {
  fail("there are ", launched_ranks(),
       " ranks, but this tritgrad was built without MPI; install libopenmpi-dev and build again");
}

void abort_mpi() {}

}  // namespace tritgrad
