// Cells of a text table: what a text stands for, and what is wrong with one that is no number.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tritgrad {

enum class CellKind {
  kMissing,     // nothing, or a marker such as ?, NA or nan
  kNumber,      // infinite ones and those beyond fp32, too
  kMiswritten,  // a number for people: "1,5", "1 000", a minus sign of typography
  kWord,
};

// The texts that stand for a missing cell, beside the empty one.
std::span<const std::string_view> missing_markers();

// Returns the kind of a cell and sets `number` where it is one. Markers are those of pandas,
// and "?" of the UCI repository; they are told from words by case.
CellKind classify_cell(std::string_view text, double& number);

// Whether a text, and not an empty one, stands for a missing cell.
bool is_missing_marker(std::string_view text);

// "\"1,5\" is not a number, it has a decimal comma; write a decimal point": for a cell that is
// neither missing nor a finite fp32 number.
std::string cell_fault(std::string_view text);

// A text of a file for a message, in quotes: short, and without control characters.
std::string quoted_cell(std::string_view text);

}  // namespace tritgrad
