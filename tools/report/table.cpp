#include "tools/report/table.h"

#include <algorithm>
#include <utility>

#include "engine/check.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

constexpr std::string_view kGap = "  ";

std::string pad(const std::string& text, std::size_t width, Align align) {
  const std::size_t used = display_width(text);
  const std::string blanks(width > used ? width - used : 0, ' ');
  return align == Align::kLeft ? text + blanks : blanks + text;
}

std::string repeat(std::string_view piece, std::size_t count) {
  std::string text;
  text.reserve(piece.size() * count);
  while (count-- > 0) text += piece;
  return text;
}

std::string finish_line(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::size_t sum_width(const std::vector<std::size_t>& widths, std::size_t first, std::size_t last) {
  std::size_t sum = 0;
  for (std::size_t i = first; i < last; ++i) sum += widths[i] + (i > first ? kGap.size() : 0);
  return sum;
}

// One past the last column that shares the heading of column `first`.
std::size_t group_end(const std::vector<Column>& columns, std::size_t first) {
  std::size_t last = first + 1;
  if (columns[first].group.empty()) return last;
  while (last < columns.size() && columns[last].group == columns[first].group) ++last;
  return last;
}

}  // namespace

std::size_t display_width(std::string_view utf8) {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;  // not a continuation byte
  }));
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  check(!columns_.empty(), "Table has no columns; give it at least one");
  for (Column& column : columns_) column.title = printable(column.title);
}

void Table::add_row(std::vector<std::string> cells) {
  check(cells.size() == columns_.size(), "Table row has ", cells.size(),
        " cells but the table has ", columns_.size(), " columns; give one cell for each column");
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back({"", std::move(cells)});
}

void Table::add_section(std::string title) { rows_.push_back({std::move(title), {}}); }

std::vector<std::size_t> Table::column_widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = display_width(columns_[i].title);
    for (const Row& row : rows_) {
      if (!row.cells.empty()) width = std::max(width, display_width(row.cells[i]));
    }
    widths.push_back(width);
  }
  // A heading wider than its columns widens the last of them.
  for (std::size_t first = 0, last; first < columns_.size(); first = last) {
    last = group_end(columns_, first);
    const std::size_t heading = display_width(columns_[first].group);
    const std::size_t width = sum_width(widths, first, last);
    if (heading > width) widths[last - 1] += heading - width;
  }
  return widths;
}

std::string Table::group_line(const std::vector<std::size_t>& widths) const {
  std::string line;
  for (std::size_t first = 0, last; first < columns_.size(); first = last) {
    last = group_end(columns_, first);
    if (first > 0) line += kGap;
    const std::size_t width = sum_width(widths, first, last);
    std::string heading = columns_[first].group;
    const std::size_t rest = width - display_width(heading);
    if (!heading.empty() && rest >= 4) {  // room for a visible bracket on both sides
      const std::size_t left = (rest - 2) / 2;
      heading = repeat("─", left) + " " + heading + " " + repeat("─", rest - 2 - left);
    }
    line += pad(heading, width, Align::kLeft);
  }
  return finish_line(line);
}

std::string Table::row_line(const std::vector<std::string>& cells,
                            const std::vector<std::size_t>& widths) const {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += kGap;
    line += pad(cells[i], widths[i], columns_[i].align);
  }
  return finish_line(line);
}

std::string Table::render() const {
  const std::vector<std::size_t> widths = column_widths();
  const std::string rule = repeat("─", sum_width(widths, 0, widths.size())) + "\n";
  std::vector<std::string> titles;
  bool grouped = false;
  for (const Column& column : columns_) {
    titles.push_back(column.title);
    grouped |= !column.group.empty();
  }
  std::string text = grouped ? group_line(widths) : "";
  text += row_line(titles, widths) + rule;
  for (const Row& row : rows_) {
    text += row.cells.empty() ? finish_line(row.section) : row_line(row.cells, widths);
  }
  return text;
}

}  // namespace tritgrad
