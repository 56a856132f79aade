// What this program is, what it runs on, and how much memory it has taken.
#pragma once

#include <cstdint>
#include <string>

namespace tritgrad {

// The processor's name as the system has it, or "unknown".
std::string processor();

// "tritgrad 0.1.0, avx512 kernels and Eigen, 1 thread": what decides how numbers are rounded.
std::string describe_program();
// That, and the processor: what results were made by.
std::string describe_machine();

// Most bytes of memory that this process has had so far.
std::int64_t peak_rss_bytes();

}  // namespace tritgrad
