// Pages as files.
#pragma once

#include <string>

#include "tools/report/page.h"

namespace tritgrad {

// NAME.md is written as Markdown, with its pictures in the folder NAME beside it; NAME.html as a
// page that needs nothing else. Files that are there are replaced. Throws Error when one cannot be
// written.
void write_page(const std::string& path, const Page& page);

// Refuses what write_page() could not write, before any work is done for it; "" is no page. The
// message begins with --report, the option that names the file.
void check_report_path(const std::string& path);

// Makes the folder of the pictures, where the page has one: what may fail shall fail before any
// work is done for it.
void make_picture_folder(const std::string& path);

}  // namespace tritgrad
