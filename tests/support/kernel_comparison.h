// A kernel that fills or changes an array, against the reference and against its formula.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

#include "tests/support/kernel_inputs.h"

namespace tritgrad {

// Runs body(table, out) for the reference and the table; the results must agree with each other
// and with formula(i, value before).
template <typename T, typename Body, typename Formula>
void compare(const KernelTables& table, std::int64_t n, std::int64_t offset, const Body& body,
             const Formula& formula) {
  const auto start = [](std::int64_t i) { return static_cast<T>(awkward_float(i, 7)); };
  Twins<T> out(n, offset, start);
  body(reference_kernels(), out.expected.data());
  body(table, out.actual.data());
  REQUIRE(same_bits(out.expected, out.actual, n, true));
  for (std::int64_t i = 0; i < n; ++i) {
    const T expected = formula(i, start(i));
    REQUIRE((std::isnan(expected) ? std::isnan(out.actual[i]) : out.actual[i] == expected));
  }
}

}  // namespace tritgrad
