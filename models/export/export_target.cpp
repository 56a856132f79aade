#include "models/export/export_target.h"

#include <algorithm>
#include <filesystem>

#include "engine/check.h"
#include "engine/text.h"
#include "engine/version.h"
#include "models/export/c_header.h"

namespace tritgrad {
namespace {

constexpr ExportTarget kTargets[] = {
    {".h", "C99", check_c_header, c_header_bytes, c_header},
};

const ExportTarget& target_with(const std::string& ending, const std::string& before) {
  std::vector<std::string> endings;
  std::string known;
  for (const ExportTarget& target : kTargets) {
    if (ending == target.ending) return target;
    endings.emplace_back(target.ending);
    known += concat(known.empty() ? "" : ", ", target.ending, " (", target.description, ")");
  }
  fail(before, "'", ending, "' names no kind of export; expected ", known,
       did_you_mean(ending, endings));
}

constexpr std::string_view kSignature = "Written by tritgrad ";

}  // namespace

std::span<const ExportTarget> export_targets() { return kTargets; }

const ExportTarget& export_target_of(const std::string& path) {
  return target_with(std::filesystem::path(path).extension().string(),
                     concat("--to: '", path, "': "));
}

const ExportTarget& export_target_with(const std::string& ending, const std::string& option) {
  return target_with(ending.starts_with('.') ? ending : "." + ending, option + ": ");
}

std::string export_signature() { return concat(kSignature, version(), "."); }

bool is_export(std::string_view bytes) { return bytes.find(kSignature) != bytes.npos; }

}  // namespace tritgrad
