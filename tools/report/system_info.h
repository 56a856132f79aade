// Describes this program, the machine that it runs on, and the memory that it has taken.
#pragma once

#include <cstdint>
#include <string>

namespace tritgrad {

// Returns the processor's name as the system has it, or "unknown".
std::string processor();

// "tritgrad 0.1.0, avx512 kernels and Eigen, 1 thread" names all that decides how numbers are
// rounded.
std::string describe_program();
// Adds the processor to describe_program(), to stand beside results.
std::string describe_machine();

// Returns the most bytes of memory that this process has had so far.
std::int64_t peak_rss_bytes();

}  // namespace tritgrad
