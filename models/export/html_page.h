// An inference network as one page for browsers, which carries its module, its style, and nothing
// from elsewhere: a field to draw in for grey images, pictures from files for coloured ones, and a
// form for tables, with bars of probabilities.
//
// The sources are models/export/javascript/page.*, put together with what js_module() returns.
#pragma once

#include <string>

#include "models/export/export_target.h"

namespace tritgrad {

// Throws Error for images with other than one or three channels, which no browser shows.
void check_html_page(const InferenceNetwork& network, const ExportHead& head);

// Returns the page, in UTF-8.
std::string html_page(const InferenceNetwork& network, const ExportHead& head,
                      const ExportSettings& settings);

}  // namespace tritgrad
