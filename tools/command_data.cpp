// tritgrad data: what there is to train on.
#include <fmt/format.h>

#include "engine/open_dataset.h"
#include "tools/commands.h"
#include "tools/fetch.h"
#include "tools/table.h"
