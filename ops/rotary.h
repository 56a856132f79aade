// Rotary positions: what a query and a key have in common depends on the distance between them.
#pragma once

#include <cstdint>

#include "engine/tape.h"

namespace tritgrad {

inline constexpr double kRotaryBase = 10000.0;

// x [n, heads * size], whose row r is position r % tokens of a sequence -> y [n, heads * size]: in
// each head the pair of elements (2 i, 2 i + 1) is turned by the angle position * base^(-2 i /
// size) (Su et al. 2021; neighbours in pairs, as llama.cpp's `llama` architecture). Throws Error
// unless heads of an even size and whole sequences make up x.
Var rotary(Tape& tape, const Var& x, std::int64_t heads, std::int64_t tokens);

// Turns one row x [heads * size] in place, with the same bits.
void rotate(float* x, std::int64_t heads, std::int64_t size, std::int64_t position);

}  // namespace tritgrad
