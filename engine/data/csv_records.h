// Splits separated text into records of cells.
//
// Separators are comma, semicolon or tab, as the first line has them, or what a first line
// "sep=;" names. Lines end in LF, CRLF or CR. Cells may be quoted with "", which also protects
// separators and line ends; blanks around cells, blank lines and a UTF-8 byte order mark are
// ignored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tritgrad {

class CsvRecords {
 public:
  // Far above any table of numbers, and low enough that a hostile line cannot exhaust memory.
  static constexpr std::size_t kMaxColumns = 1 << 18;

  // `text` must outlive the object; `where` names it in messages. What is compressed or in UTF-16
  // has been decoded (engine/data/table_text.h).
  CsvRecords(std::string_view text, std::string where);

  // Reads the next record that is not a blank line; false at the end of the text.
  bool next(std::vector<std::string>& cells);
  // The line on which the last record began, from 1.
  std::int64_t line() const { return record_line_; }

 private:
  void take_declared_separator();
  void read_cell(std::string& cell);
  void read_quoted(std::string& cell);
  bool at_line_end() const;
  void pass_line_end();
  bool skip_blank_lines();

  std::string_view text_;
  std::string where_;
  char separator_;
  std::size_t position_ = 0;
  std::int64_t line_ = 1;
  std::int64_t record_line_ = 0;
};

}  // namespace tritgrad
