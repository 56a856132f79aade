// Loops whose indices are constants.
#pragma once

#include <utility>

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// Calls body<i>() for 0 <= i < kCount. The indices are constants from the start: with loops, which
// are unrolled late, g++ 12 keeps arrays in memory beside the registers.
template <int kCount, typename Body>
[[gnu::always_inline]] inline void unrolled(const Body& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (body.template operator()<i>(), ...);
  }
  (std::make_integer_sequence<int, kCount>{});
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
