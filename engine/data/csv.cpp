#include "engine/data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "engine/check.h"
#include "engine/data/label_encoder.h"
#include "engine/data/table_text.h"
#include "engine/files/read_file.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The first bytes of files that are taken for tables and are none, and what to do about them.
struct ForeignBeginning {
  std::string_view bytes, advice;
};
constexpr ForeignBeginning kForeign[] = {
    {"\x1F\x8B", "the file is compressed by gzip; unpack it first"},
    {"PK\x03\x04",
     "the file is a zip archive or a spreadsheet; unpack it, or save the table as CSV"},
    {"\xFF\xFE", "the file is in UTF-16; save it as UTF-8"},
    {"\xFE\xFF", "the file is in UTF-16; save it as UTF-8"},
};

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// The separator that occurs most often outside quotes in the first line that has any; of equals,
// the one that numbers contain least (a comma may be a decimal sign).
char detect_separator(std::string_view text) {
  std::int64_t tabs = 0, semicolons = 0, commas = 0;
  bool quoted = false;
  for (char c : text) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\n' && tabs + semicolons + commas > 0) break;
    tabs += c == '\t';
    semicolons += c == ';';
    commas += c == ',';
  }
  if (tabs > 0 && tabs >= semicolons && tabs >= commas) return '\t';
  return semicolons > 0 && semicolons >= commas ? ';' : ',';
}

// Splits separated text into records of cells.
class CsvRecords {
 public:
  // Far above any table of numbers, and low enough that a hostile line cannot exhaust memory.
  static constexpr std::size_t kMaxColumns = 1 << 18;

  // `text` must outlive the object; `where` names it in messages. Throws Error when
  // it begins as compressed files or UTF-16 do.
  CsvRecords(std::string_view text, std::string where);

  // Reads the next record that is not a blank line; false at the end of the text.
  bool next(std::vector<std::string>& cells);
  // The line on which the last record began, from 1.
  std::int64_t line() const { return record_line_; }

 private:
  void read_cell(std::string& cell);
  void read_quoted(std::string& cell);
  bool at_line_end() const;
  bool skip_blank_lines();

  std::string_view text_;
  std::string where_;
  char separator_;
  std::size_t position_ = 0;
  std::int64_t line_ = 1;
  std::int64_t record_line_ = 0;
};

CsvRecords::CsvRecords(std::string_view text, std::string where)
    : text_(text), where_(std::move(where)) {
  for (const ForeignBeginning& foreign : kForeign) {
    check(!text_.starts_with(foreign.bytes), where_, ": ", foreign.advice);
  }
  if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  separator_ = detect_separator(text_);
}

bool CsvRecords::at_line_end() const {
  return position_ == text_.size() || text_[position_] == '\n' ||
         text_.substr(position_, 2) == "\r\n" ||
         (text_[position_] == '\r' && position_ + 1 == text_.size());
}

bool CsvRecords::skip_blank_lines() {
  while (position_ < text_.size()) {
    std::size_t end = position_;
    while (end < text_.size() && (text_[end] == ' ' || text_[end] == '\r')) ++end;
    if (end == text_.size()) return false;
    if (text_[end] != '\n') return true;
    position_ = end + 1;
    ++line_;
  }
  return false;
}

void CsvRecords::read_quoted(std::string& cell) {
  const std::int64_t opened = line_;
  for (++position_; position_ < text_.size(); ++position_) {
    const char c = text_[position_];
    if (c == '"') {
      ++position_;
      if (position_ == text_.size() || text_[position_] != '"') return;
    }
    line_ += c == '\n';
    cell += c;
  }
  fail(where_, ", line ", opened, ": a quoted cell is never closed; add the missing \"");
}

void CsvRecords::read_cell(std::string& cell) {
  cell.clear();
  while (!at_line_end() && is_blank(text_[position_]) && text_[position_] != separator_)
    ++position_;
  if (position_ < text_.size() && text_[position_] == '"') {
    read_quoted(cell);
    while (!at_line_end() && is_blank(text_[position_]) && text_[position_] != separator_) {
      ++position_;
    }
    check(at_line_end() || text_[position_] == separator_, where_, ", line ", line_,
          ": text follows a closing quote; write a quote inside a quoted cell as \"\"");
    return;
  }
  const std::size_t begin = position_;
  while (!at_line_end() && text_[position_] != separator_) ++position_;
  cell = text_.substr(begin, position_ - begin);
  while (!cell.empty() && is_blank(cell.back())) cell.pop_back();
}

bool CsvRecords::next(std::vector<std::string>& cells) {
  if (!skip_blank_lines()) return false;
  record_line_ = line_;
  for (std::size_t count = 0;;) {
    check(count < kMaxColumns, where_, ", line ", record_line_, ": more than ", kMaxColumns,
          " columns; is this a table?");
    if (cells.size() == count) cells.emplace_back();
    read_cell(cells[count++]);
    if (at_line_end()) {
      cells.resize(count);
      break;
    }
    ++position_;  // the separator
  }
  if (position_ < text_.size() && text_[position_] == '\r') ++position_;
  if (position_ < text_.size()) {
    ++position_;
    ++line_;
  }
  return true;
}

// Text of a file for a message: short, and without control characters.
std::string printable(std::string_view cell) {
  std::string text(cell.substr(0, 40));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; }, '?');
  return text + (cell.size() > 40 ? "..." : "");
}
std::string shown(std::string_view cell) { return "\"" + printable(cell) + "\""; }

std::optional<std::size_t> column_by_number(const std::string& label, std::size_t columns) {
  std::int64_t number = 0;
  const char* end = label.data() + label.size();
  const auto [stop, error] = std::from_chars(label.data(), end, number);
  if (stop != end || error != std::errc()) return std::nullopt;
  if (number < 0) number += static_cast<std::int64_t>(columns);
  if (number < 0 || number >= static_cast<std::int64_t>(columns)) return std::nullopt;
  return static_cast<std::size_t>(number);
}

// The first record, and what it says about the table.
struct Layout {
  std::vector<std::string> first;
  std::size_t label = 0;
  bool has_header = false;
};

bool looks_like_header(const std::vector<std::string>& cells, std::size_t label) {
  bool any_name = false;
  for (std::size_t column = 0; column < cells.size(); ++column) {
    if (column == label || cells[column].empty()) continue;
    if (parse_number(cells[column])) return false;
    any_name = true;
  }
  return any_name;
}

Layout find_layout(std::vector<std::string> first, const std::string& where,
                   const CsvOptions& options) {
  const std::size_t columns = first.size();
  check(columns > 1, where, ": only one column found, at least one feature and a label needed; ",
        "separate cells by comma, semicolon or tab");
  Layout layout{std::move(first), columns - 1, options.header == CsvOptions::Header::kYes};
  const auto& cells = layout.first;
  if (!options.label.empty()) {
    const auto named = std::find(cells.begin(), cells.end(), options.label);
    const auto numbered = column_by_number(options.label, columns);
    if (named != cells.end() && options.header != CsvOptions::Header::kNo && !numbered) {
      // A name that stands in the first line proves that the line holds names.
      layout.has_header = true;
    }
    if (named != cells.end() &&
        (layout.has_header ||
         (options.header == CsvOptions::Header::kAuto && looks_like_header(cells, columns)))) {
      check(std::find(named + 1, cells.end(), options.label) == cells.end(), where,
            ": two columns are called \"", options.label, "\"; give the label column by number");
      layout.label = static_cast<std::size_t>(named - cells.begin());
      layout.has_header = true;
      return layout;
    }
    check(numbered.has_value(), where, ": no label column ", shown(options.label), " among the ",
          columns, " columns",
          options.header == CsvOptions::Header::kNo
              ? concat("; without a header, columns are numbers from 0 to ", columns - 1)
              : did_you_mean(options.label, cells));
    layout.label = *numbered;
  }
  if (options.header == CsvOptions::Header::kAuto) {
    layout.has_header = looks_like_header(cells, layout.label);
  }
  return layout;
}

// Checkpoints and results hold names as JSON, which knows no other text.
void check_header(const std::vector<std::string>& names, const std::string& where,
                  std::int64_t line) {
  for (std::size_t column = 0; column < names.size(); ++column) {
    if (is_utf8(names[column])) continue;
    fail(where, ", line ", line, ": the name of column ", column,
         " is not UTF-8; save the file as UTF-8");
  }
}

class TableReader {
 public:
  TableReader(Layout layout, const std::string& where)
      : layout_(std::move(layout)), where_(where), labels_(where) {
    for (std::size_t column = 0; column < layout_.first.size(); ++column) {
      names_.push_back(layout_.has_header ? layout_.first[column]
                                          : "column " + std::to_string(column));
    }
  }

  void add(const std::vector<std::string>& cells, std::int64_t line) {
    if (cells.size() != names_.size()) {
      fail(where_, ", line ", line, ": ", cells.size(),
           cells.size() == 1 ? " cell found, " : " cells found, ", names_.size(),
           " expected as in the first line");
    }
    for (std::size_t column = 0; column < cells.size(); ++column) {
      if (column == layout_.label) {
        add_label(cells[column], line);
      } else {
        values_.push_back(value(cells[column], line, column));
      }
    }
    ++rows_;
  }

  Dataset finish(const CsvOptions& options) {
    check(rows_ > 0, where_, ": no rows of data; ",
          layout_.has_header ? "only a header line was found" : "the file is empty");
    Dataset dataset;
    dataset.name = where_;
    names_.erase(names_.begin() + static_cast<std::ptrdiff_t>(layout_.label));
    dataset.allocate(rows_, static_cast<std::int64_t>(names_.size()), Element::kFloat32);
    dataset.feature_names = std::move(names_);
    std::copy(values_.begin(), values_.end(), dataset.values.as<float>());
    labels_.finish(dataset, options.class_names, options.to_score);
    if (options.header == CsvOptions::Header::kAuto && !layout_.has_header) {
      check_first_label(dataset);
    }
    return dataset;
  }

 private:
  float value(const std::string& cell, std::int64_t line, std::size_t column) const {
    const std::optional<double> number = parse_number(cell);
    if (!number) {
      fail(where_, ", line ", line, ", ", printable(names_[column]), ": ",
           cell.empty() ? "the cell is empty" : shown(cell) + " is not a number",
           rows_ == 0 && !layout_.has_header
               ? ", numbers expected; if the first line holds names, say that there is a header"
               : ", numbers expected; fill or remove the row, or name the label's column");
    }
    // Compared in double, because converting a larger value to float is undefined.
    if (!(std::abs(*number) <= std::numeric_limits<float>::max())) {
      fail(where_, ", line ", line, ", ", printable(names_[column]), ": ", shown(cell),
           " is not a finite fp32 number; fill or remove the row");
    }
    return static_cast<float>(*number);
  }

  // Names of columns may be numbers, so a first line with a label of its own is one of names or
  // of data.
  void check_first_label(const Dataset& dataset) const {
    const std::vector<std::int64_t> counts = dataset.class_counts();
    const auto first = static_cast<std::size_t>(dataset.labels[0]);
    const bool lone = counts[first] == 1 && std::count(counts.begin(), counts.end(), 1) == 1;
    check(!lone, where_, ": the label of the first line, ", shown(dataset.class_names[first]),
          ", is that of no other line; say whether the line holds names (--header yes) or data "
          "(--header no)");
  }

  void add_label(const std::string& cell, std::int64_t line) {
    if (cell.empty()) fail(where_, ", line ", line, ": the label is empty; fill or remove the row");
    if (const auto number = parse_number(cell); number && !std::isfinite(*number)) {
      fail(where_, ", line ", line, ": the label is ", shown(cell), "; fill or remove the row");
    }
    if (!is_utf8(cell)) {
      fail(where_, ", line ", line, ": the label is not UTF-8; save the file as UTF-8");
    }
    labels_.add(cell);
  }

  Layout layout_;
  const std::string& where_;
  std::vector<std::string> names_;
  LabelEncoder labels_;
  std::vector<float> values_;
  std::int64_t rows_ = 0;
};

}  // namespace

Dataset parse_csv(std::string_view text, const std::string& where, const CsvOptions& options) {
  CsvRecords records(text, where);
  std::vector<std::string> cells;
  check(records.next(cells), where, ": the file is empty; at least two rows of data needed");
  Layout layout = find_layout(cells, where, options);
  const bool has_header = layout.has_header;
  if (has_header) check_header(layout.first, where, records.line());
  TableReader table(std::move(layout), where);
  if (!has_header) table.add(cells, records.line());
  while (records.next(cells)) table.add(cells, records.line());
  return table.finish(options);
}

Dataset read_csv(const std::string& path, const CsvOptions& options) {
  const std::string where = table_source(path);
  Dataset dataset = parse_csv(decode_table_text(read_file_or_pipe(path), where), where, options);
  dataset.name = table_name(path);
  return dataset;
}

}  // namespace tritgrad
