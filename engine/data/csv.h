// Tables of numbers with one label column, as text.
//
// Separators are comma, semicolon or tab (detected in the first line). Cells may be quoted with "",
// which also protects separators and line ends; blanks around cells, blank lines, CRLF and a UTF-8
// byte order mark are ignored. Names of columns and classes must be UTF-8.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/data/dataset.h"

namespace tritgrad {

struct CsvOptions {
  enum class Header {
    kAuto,  // the first line holds names when none of its feature cells is a number
    kYes,
    kNo,
  };
  Header header = Header::kAuto;
  // The label column: a name of the header, or a number counted from 0 (negative: from the end).
  // A name wins over a number; empty means the last column.
  std::string label;
  // The classes in order; empty: found in the data (engine/data/label_encoder.h).
  std::vector<std::string> class_names;
  // For a model that knows its classes: rows of one class are enough, and so are few rows.
  bool to_score = false;
};

// `where` names the source in messages and the data set.
Dataset parse_csv(std::string_view text, const std::string& where, const CsvOptions& options = {});
Dataset read_csv(const std::string& path, const CsvOptions& options = {});

}  // namespace tritgrad
