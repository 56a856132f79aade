#include "tools/report/confusion_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/text.h"
#include "tools/report/table.h"

namespace tritgrad {
namespace {

constexpr std::size_t kMostColumns = 10;

// Returns "setosa (12)", the class that most rows of another one are taken for, or "".
std::string most_frequent_mistake(const Confusion& confusion, std::size_t actual) {
  std::vector<std::int64_t> wrong = confusion.counts[actual];
  wrong[actual] = 0;
  const auto most = std::max_element(wrong.begin(), wrong.end());
  if (*most == 0) return "";
  const auto predicted = static_cast<std::size_t>(most - wrong.begin());
  return fmt::format("{} ({})", printable(confusion.classes[predicted]), *most);
}

}  // namespace

std::string confusion_table(const Confusion& confusion) {
  const bool is_small = confusion.classes.size() <= kMostColumns;
  std::vector<Column> columns{
      {"class", Align::kLeft}, {"rows", Align::kRight}, {"recall %", Align::kRight}};
  if (is_small) {
    for (const std::string& name : confusion.classes) {
      columns.push_back({name, Align::kRight, "taken for"});
    }
  } else {
    columns.push_back({"most often mistaken for", Align::kLeft});
  }
  Table table(std::move(columns));
  for (std::size_t actual = 0; actual < confusion.classes.size(); ++actual) {
    const std::vector<std::int64_t>& counts = confusion.counts[actual];
    const auto rows = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    if (rows == 0) continue;
    std::vector<std::string> cells{printable(confusion.classes[actual]), fmt::format("{}", rows),
                                   fmt::format("{:.2f}", 100.0 * confusion.recall(actual))};
    if (is_small) {
      for (const std::int64_t count : counts) cells.push_back(fmt::format("{}", count));
    } else {
      cells.push_back(most_frequent_mistake(confusion, actual));
    }
    table.add_row(std::move(cells));
  }
  return table.render();
}

}  // namespace tritgrad
