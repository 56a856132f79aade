// Comparisons of recipes as one page, in HTML or Markdown.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/record.h"
#include "tools/compare/summary.h"
#include "tools/report/page.h"

namespace tritgrad {

struct Report {
  std::string command;  // repeats all comparisons when typed into a shell
  std::string machine;  // one line: version, instruction set, threads, processor
  std::vector<ComparisonRecord> records;
};

// The result in one or two sentences: the smallest recipe whose interval rules out a loss of half a
// point of accuracy, or else the most accurate recipe.
std::string conclusion(const Comparison& comparison);

// The recipes that are below and above the baseline, and those that these seeds cannot tell from
// it, a sentence each.
std::vector<std::string> differences(const Comparison& comparison);

Page make_page(const Report& report);

}  // namespace tritgrad
