// Tables of R packages, exported by R itself.
#pragma once

#include <string>

#include "tools/cli/fetch.h"

namespace tritgrad {

// Turns `rdata`, a file of R that holds one data frame of whole numbers and one factor, into
// `table`: CSV with a header line, the factor last, rows in their order. Needs Rscript; whole
// numbers are spelled the same by every version of R.
Conversion export_from_r(std::string rdata, std::string table);

}  // namespace tritgrad
