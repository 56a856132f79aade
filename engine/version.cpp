#include "engine/version.h"

namespace tritgrad {

const char* version() { return TRITGRAD_VERSION; }

}  // namespace tritgrad
