#include "engine/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/check.h"
#include "engine/label_encoder.h"
#include "engine/nearest.h"
#include "engine/parse_number.h"
#include "engine/read_file.h"

namespace tritgrad {
namespace {

using Cells = std::vector<std::string>;

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Walks through the records of a text; a quoted cell may hold separators, quotes ("") and line ends.
class Records {
 public:
  Records(std::string_view text, const std::string& where) : text_(text), where_(where) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);  // byte order mark
    const std::string_view first = text_.substr(0, text_.find('\n'));
    for (char candidate : {'\t', ';', ','}) {
      if (first.find(candidate) != std::string_view::npos) separator_ = candidate;
    }
  }

  // The next record that is not blank; false at the end.
  bool next(Cells& cells) {
    while (position_ < text_.size()) {
      line_ = next_line_;
      read_record(cells);
      if (cells.size() > 1 || !cells[0].empty()) return true;
    }
    return false;
  }
  std::int64_t line() const { return line_; }

 private:
  void read_record(Cells& cells) {
    cells.clear();
    for (bool more = true; more;) {
      std::string cell;
      const bool quoted = read_cell(cell);
      cells.push_back(quoted ? cell : std::string(trim(cell)));
      more = position_ < text_.size() && text_[position_] == separator_;
      if (more) ++position_;
    }
    if (position_ < text_.size() && text_[position_] == '\r') ++position_;
    if (position_ < text_.size()) {
      check(text_[position_] == '\n', where_, ", line ", line_, ": text after a closing quote");
      ++position_;
      ++next_line_;
    }
  }

  bool read_cell(std::string& cell) {
    if (position_ >= text_.size() || text_[position_] != '"') {
      const std::size_t end = find_end();
      cell = text_.substr(position_, end - position_);
      position_ = end;
      return false;
    }
    for (++position_;; ++position_) {
      check(position_ < text_.size(), where_, ", line ", line_, ": a quote is never closed");
      if (text_[position_] == '"') {
        if (position_ + 1 >= text_.size() || text_[position_ + 1] != '"') break;
        ++position_;
      } else if (text_[position_] == '\n') {
        ++next_line_;
      }
      cell += text_[position_];
    }
    ++position_;
    return true;
  }

  std::size_t find_end() const {
    std::size_t end = position_;
    while (end < text_.size() && text_[end] != separator_ && text_[end] != '\n') ++end;
    if (end > position_ && text_[end - 1] == '\r' && (end == text_.size() || text_[end] == '\n')) --end;
    return end;
  }

  std::string_view text_;
  const std::string& where_;
  char separator_ = ',';
  std::size_t position_ = 0;
  std::int64_t line_ = 1;
  std::int64_t next_line_ = 1;
};

bool has_text_cell(const Cells& cells) {
  return std::any_of(cells.begin(), cells.end(),
                     [](const std::string& cell) { return !parse_number(cell).has_value(); });
}

bool is_header(const Cells& first, const Cells* second, const CsvOptions& options,
               const std::string& where) {
  if (options.header == "yes") return true;
  if (options.header == "no") return false;
  check(options.header == "auto", where, ": header = '", options.header,
        "', expected auto, yes or no");
  if (second == nullptr || first.size() != second->size()) return has_text_cell(first);
  // A text label does not make the first line a header: some other cell must change from text to number.
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (!parse_number(first[i]) && parse_number((*second)[i])) return true;
  }
  return false;
}

std::size_t label_column(const Cells& names, const CsvOptions& options, const std::string& where) {
  const auto columns = static_cast<std::int64_t>(names.size());
  if (options.label.empty()) return names.size() - 1;
  const auto named = std::find(names.begin(), names.end(), options.label);
  if (named != names.end()) return static_cast<std::size_t>(named - names.begin());
  std::int64_t number = 0;
  const char* end = options.label.data() + options.label.size();
  const auto [stop, error] = std::from_chars(options.label.data(), end, number);
  check(error == std::errc() && stop == end, where, ": there is no label column '", options.label, "'",
        did_you_mean(options.label, names));
  if (number < 0) number += columns;
  check(number >= 0 && number < columns, where, ": label column ", options.label, " is outside 0..",
        columns - 1);
  return static_cast<std::size_t>(number);
}

float parse_cell(const std::string& cell, const std::string& column, std::int64_t line,
                 const std::string& where) {
  const std::optional<double> value = parse_number(cell);
  check(value.has_value(), where, ", line ", line, ", column '", column, "': '", cell,
        "' is not a number; encode or remove it");
  const float narrowed = static_cast<float>(*value);
  check(std::isfinite(narrowed), where, ", line ", line, ", column '", column, "': '", cell,
        "' is not a finite number; remove the row or replace the value");
  return narrowed;
}

}  // namespace

Dataset parse_csv(std::string_view text, const std::string& where, const CsvOptions& options) {
  Records records(text, where);
  Cells first, cells;
  check(records.next(first), where, " is empty; expected lines of numbers with a label column");
  const std::int64_t first_line = records.line();
  bool have_row = records.next(cells);
  const bool header = is_header(first, have_row ? &cells : nullptr, options, where);
  Cells names = first;
  if (!header) {
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = "column " + std::to_string(i);
  }
  check(names.size() >= 2, where, ", line ", first_line, ": ", names.size(),
        " column found, expected at least one feature and a label");
  const std::size_t label = label_column(names, options, where);

  LabelEncoder labels(where);
  std::vector<float> values;
  std::int64_t rows = 0;
  const auto add_row = [&](const Cells& row, std::int64_t line) {
    check(row.size() == names.size(), where, ", line ", line, ": ", row.size(),
          " cells found, expected ", names.size(), " as in line ", first_line);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i != label) values.push_back(parse_cell(row[i], names[i], line, where));
    }
    check(!row[label].empty(), where, ", line ", line, ": the label is empty");
    labels.add(row[label]);
    ++rows;
  };
  if (!header) add_row(first, first_line);
  for (; have_row; have_row = records.next(cells)) add_row(cells, records.line());
  check(rows > 0, where, ": no rows follow the header");

  Dataset dataset;
  dataset.name = where;
  dataset.allocate(rows, static_cast<std::int64_t>(names.size()) - 1, Element::kFloat32);
  std::copy(values.begin(), values.end(), dataset.values.as<float>());
  labels.finish(dataset, options.class_order);
  names.erase(names.begin() + static_cast<std::ptrdiff_t>(label));
  dataset.feature_names = std::move(names);
  return dataset;
}

Dataset read_csv(const std::string& path, const CsvOptions& options) {
  return parse_csv(read_file(path), path, options);
}

}  // namespace tritgrad
