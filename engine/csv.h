// Tables of numbers with a label column.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/dataset.h"

namespace tritgrad {

struct CsvOptions {
  std::string header = "auto";  // "yes", "no", or "auto": a first line with a cell that is no number,
                                // where the second line has one
  std::string label;            // column by name, or by number from 0 (negative: from the end);
                                // empty: the last
  std::vector<std::string> class_order;  // classes and their numbers; empty: found in the file
};

// Cells separated by commas, semicolons or tabs (whichever the first line has), quoted where needed, lines
// ended by LF or CRLF. All cells but the label must be finite numbers; labels may be numbers or text.
// Throws Error with file, line and column, what was found and what was expected.
Dataset read_csv(const std::string& path, const CsvOptions& options);
// The same for text in memory; `where` begins the messages.
Dataset parse_csv(std::string_view text, const std::string& where, const CsvOptions& options);

}  // namespace tritgrad
