// The sources in models/export/javascript/, which CMake compiles into the library.
#pragma once

#include <string_view>

namespace tritgrad::javascript {

extern const std::string_view kModel;  // model.js

}  // namespace tritgrad::javascript
