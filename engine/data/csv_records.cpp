#include "engine/data/csv_records.h"

#include <utility>

#include "engine/check.h"

namespace tritgrad {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool ends_line(char c) { return c == '\n' || c == '\r'; }

// The separator that occurs most often outside quotes in the first line that has any; of equals,
// the one that numbers contain least (a comma may be a decimal sign).
char detect_separator(std::string_view text) {
  std::int64_t tabs = 0, semicolons = 0, commas = 0;
  bool quoted = false;
  for (char c : text) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (ends_line(c) && tabs + semicolons + commas > 0) break;
    tabs += c == '\t';
    semicolons += c == ';';
    commas += c == ',';
  }
  if (tabs > 0 && tabs >= semicolons && tabs >= commas) return '\t';
  return semicolons > 0 && semicolons >= commas ? ';' : ',';
}

}  // namespace

CsvRecords::CsvRecords(std::string_view text, std::string where)
    : text_(text), where_(std::move(where)) {
  if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  separator_ = detect_separator(text_);
  take_declared_separator();
}

// Spreadsheets read and write a first line "sep=;".
void CsvRecords::take_declared_separator() {
  constexpr std::string_view kDeclaration = "sep=";
  const std::size_t at = kDeclaration.size();
  if (!text_.starts_with(kDeclaration) || text_.size() <= at + 1 || !ends_line(text_[at + 1])) {
    return;
  }
  const char declared = text_[at];
  check(declared == ',' || declared == ';' || declared == '\t', where_,
        ", line 1: the first line declares the separator '", std::string_view(&declared, 1),
        "'; separate cells by comma, semicolon or tab");
  separator_ = declared;
  position_ = at + 1;
  pass_line_end();
}

bool CsvRecords::at_line_end() const {
  return position_ == text_.size() || ends_line(text_[position_]);
}

void CsvRecords::pass_line_end() {
  if (position_ == text_.size()) return;
  position_ += text_.substr(position_, 2) == "\r\n" ? 2 : 1;
  ++line_;
}

bool CsvRecords::skip_blank_lines() {
  while (position_ < text_.size()) {
    const std::size_t begin = position_;
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
    if (!at_line_end()) {
      position_ = begin;
      return true;
    }
    pass_line_end();
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
    // CRLF is one line end, which its second character counts.
    line_ += c == '\n' || (c == '\r' && text_.substr(position_, 2) != "\r\n");
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
  pass_line_end();
  return true;
}

}  // namespace tritgrad
