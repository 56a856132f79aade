// The sources in models/export/javascript/, which CMake compiles into the library.
#pragma once

#include <string_view>

namespace tritgrad::javascript {

extern const std::string_view kModel;  // model.js
extern const std::string_view kPage;   // page.js
extern const std::string_view kStyle;  // page.css
extern const std::string_view kFrame;  // page.html

}  // namespace tritgrad::javascript
