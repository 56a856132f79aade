#include <CLI/CLI.hpp>
#include <algorithm>

#include "engine/check.h"
#include "tools/cli/config_file.h"
#include "tools/compare/request.h"

namespace tritgrad {
namespace {

constexpr const char* kTables = "comparison";

// The keys of one comparison over those in common; tables such as [set] are joined.
void add_missing(toml::table& own, const toml::table& common) {
  for (const auto& [key, node] : common) {
    toml::table* inner = own[key].as_table();
    if (inner != nullptr && node.is_table()) {
      add_missing(*inner, *node.as_table());
    } else if (!own.contains(key)) {
      own.insert(key, node);
    }
  }
}

ComparisonRequest read_comparison(const toml::table& table, const std::string& where,
                                  toml::source_index line, const std::string& cache) {
  ComparisonRequest request;
  request.where = concat(where, ", the comparison in line ", line);
  CLI::App app("", "compare");
  add_comparison_options(app, request);
  for (const char* name : {"--threads", "--json", "--quiet", "--cache", "--config"}) {
    app.remove_option(app.get_option(name));
  }
  std::vector<std::string> arguments = option_arguments(table, where, app);
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(arguments);
    request.common.terminal.cache = cache;
    prepare(request, app);
  } catch (const CLI::ParseError& error) {
    fail(request.where, ": ", error.what());
  } catch (const Error& error) {
    fail(request.where, ": ", error.what());
  }
  return request;
}

}  // namespace

std::vector<ComparisonRequest> read_plan(const std::string& path, const std::string& cache) {
  const std::string where = "plan '" + path + "'";
  const toml::table plan = read_toml("plan", path);
  const toml::array* tables = plan[kTables].as_array();
  check(tables != nullptr && tables->is_array_of_tables(), where,
        ": there is no [[comparison]]; write one for each data set");
  toml::table common = plan;
  common.erase(kTables);
  std::vector<ComparisonRequest> requests;
  for (const toml::node& node : *tables) {
    toml::table table = *node.as_table();
    add_missing(table, common);
    requests.push_back(read_comparison(table, where, node.source().begin.line, cache));
  }
  return requests;
}

}  // namespace tritgrad
