#include "tools/cli/convert_rdata.h"

#include <span>

#include "engine/check.h"
#include "engine/files/atomic_file.h"

namespace tritgrad {
namespace {

constexpr std::string_view kScript = R"(arguments <- commandArgs(trailingOnly = TRUE)
rows <- get(load(arguments[1]))
label <- which(sapply(rows, is.factor))
rows[-label] <- lapply(rows[-label], as.integer)
write.csv(cbind(rows[-label], rows[label]), arguments[2], quote = FALSE, row.names = FALSE)
)";
constexpr std::chrono::seconds kTimeLimit{600};

}  // namespace

Conversion export_from_r(std::string rdata, std::string table) {
  return [rdata = std::move(rdata), table = std::move(table)](const std::filesystem::path& packed,
                                                              const std::filesystem::path& made) {
    replace_file(made / "export.R", std::as_bytes(std::span(kScript)));
    const Client r{{"Rscript", "--vanilla", "export.R", (packed / rdata).string(), table},
                   "r-base-core"};
    const ClientResult result = run_client(r, made, kTimeLimit);
    check(result.exit_code == 0, failure_of(r, result));
  };
}

}  // namespace tritgrad
