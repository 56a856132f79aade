// What the instruction sets do not tell of a processor. Compiled for the baseline.
#pragma once

#include <atomic>

namespace tritgrad {

// Whether sixteen look-ups in a small table take fewer cycles than a quotient of vectors and what
// surrounds it: taken to be so on Intel's from Sapphire Rapids on, and nowhere else. Tests set it.
std::atomic<bool>& gathers_quickly();

}  // namespace tritgrad
