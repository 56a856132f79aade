// What a process needs before it does anything else: three standard streams, a stack, and threads
// that wait in a way that suits it.
#pragma once

namespace tritgrad {

// Opens those of the descriptors 0 to 2 that are closed, so that no file of ours gets one of them
// and then what is printed. Reading and writing fail there, as on closed ones; only what goes to
// standard error is lost without a failure.
void open_standard_streams();

// Sets the policy by which the threads of OpenMP wait, raises a limit of the stack that is too low,
// and starts the program anew where either changed: both are read before main() begins. Throws
// Error where the limit may not be raised as far as is needed.
void start_again_if_needed(char** argv);

}  // namespace tritgrad
