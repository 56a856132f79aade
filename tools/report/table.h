// Text tables for a terminal: aligned columns, a rule under the header, sections.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/report/number_text.h"

namespace tritgrad {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
  // Neighbours with the same non-empty group stand under one heading.
  std::string group = {};
};

class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // Takes one cell for each column; cells are UTF-8 without line breaks. Control characters, which
  // names of columns and classes may have, are shown as '?', in titles too.
  void add_row(std::vector<std::string> cells);
  // Writes a line of its own above the rows that follow.
  void add_section(std::string title);

  std::size_t columns() const { return columns_.size(); }

  // Every line ends in a newline and has no trailing blanks.
  std::string render() const;

 private:
  struct Row {
    std::string section;  // used when there are no cells
    std::vector<std::string> cells;
  };

  std::vector<std::size_t> column_widths() const;
  std::string group_line(const std::vector<std::size_t>& widths) const;
  std::string row_line(const std::vector<std::string>& cells,
                       const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

// Counts code points, which is the number of terminal cells of everything that these tables print;
// East Asian wide characters and combining marks count as one too.
std::size_t display_width(std::string_view utf8);

}  // namespace tritgrad
