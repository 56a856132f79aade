// Rows of a table by number: the first layer of a language model.
#pragma once

#include <cstdint>
#include <span>

#include "engine/tape.h"

namespace tritgrad {

// tokens[n] in [0, vocabulary), table [vocabulary, width] in any format -> y [n, width], row i of
// which is row tokens[i] of the table. dtable is the sums of dy's rows by token, in the order of
// the rows. The tokens must outlive backward(). Throws Error for none, and for one out of range.
Var embedding(Tape& tape, std::span<const std::int32_t> tokens, Parameter& table);

}  // namespace tritgrad
