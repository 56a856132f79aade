// What the instruction sets do not tell of a processor. Compiled for the baseline.
#pragma once

namespace tritgrad {

// Whether sixteen look-ups in a small table take fewer cycles than a few operations on vectors:
// Intel's from Sapphire Rapids on, and none of AMD's so far.
bool gathers_quickly();

}  // namespace tritgrad
