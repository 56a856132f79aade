// root8: unsigned 8-bit codes of square roots, under a scale per group; 1.0625 bytes.
//
// The variance of FlashOptim (arXiv 2602.23349), for numbers that are never negative. Groups,
// planes and rounding are those of companded8.
//
//     code c in [0, 255], scale s:   value = master = s (c / 255)^2
//
// The smallest number above zero is s / 65025. Only zero has code 0: smaller numbers are rounded up
// to code 1 whatever the rounding, because a variance that vanishes under a momentum that does not
// would turn the quotient of the two into a step of momentum / eps. Too large a variance merely
// shortens a step. Below, their mean is therefore too large, by less than s / 65025.
//
// The scale is the group's largest number, not its root: scales reach as far as fp32, so a square
// costs no range, and rounding has the right mean where it matters. A group that holds a negative
// number becomes NaN as a whole, as it does with an infinity or a NaN.
#pragma once

#include "engine/formats/companded8.h"

namespace tritgrad {

using Root8 = Companded<std::uint8_t>;
static_assert(Format<Root8>);

}  // namespace tritgrad
