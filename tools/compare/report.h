// Comparisons of recipes as one page, in HTML or Markdown.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/record.h"
#include "tools/report/page.h"

namespace tritgrad {

struct Report {
  std::string command;  // repeats all comparisons when typed into a shell
  std::string machine;  // one line: version, instruction set, threads, processor
  std::vector<ComparisonRecord> records;
};

// Every sentence of it is made from the numbers of the records.
Page make_page(const Report& report);

}  // namespace tritgrad
