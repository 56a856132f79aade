// Comparisons of recipes as one page, in HTML or Markdown.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/page.h"
#include "tools/compare/record.h"

namespace tritgrad {

struct Report {
  std::string command;  // repeats all comparisons when typed into a shell
  std::string machine;  // one line: version, instruction set, threads, processor
  std::vector<ComparisonRecord> records;
};

// Every sentence of it is made from the numbers of the records.
Page make_page(const Report& report);

// NAME.md is written as Markdown, with its pictures in the folder NAME beside it; NAME.html as a
// page that needs nothing else. Files that are there are replaced. Throws Error when one cannot be
// written.
void write_report(const std::string& path, const Report& report);

// Refuses what write_report() could not write, before any work is done for it; "" is no report.
void check_report_path(const std::string& path);

// Makes the folder of the pictures, where the report has one: what may fail shall fail before any
// work is done for it.
void make_picture_folder(const std::string& path);

}  // namespace tritgrad
