// The version of the library, as CMakeLists.txt has it.
#pragma once

namespace tritgrad {

const char* version();  // "0.1.0"

}  // namespace tritgrad
