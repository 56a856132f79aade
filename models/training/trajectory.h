// Short texts that change whenever the results of training change: results of runs that were made
// by another program are recognised by them, and commits can quote them.
#pragma once

namespace tritgrad {

// Each is the hash of the hashes that a test records, and that test compares it with what it
// measures (tests/models/training/test_integer_training.cpp, tests/optim/test_flash_training.cpp).
struct Trajectory {
  const char* integer;  // every recipe whose products are of integers
  const char* flash;    // updates in the formats of FlashOptim
};
inline constexpr Trajectory kTrajectory{"c96e4764a0e423fd", "221720436b85b280"};

}  // namespace tritgrad
