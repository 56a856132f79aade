// The keys of a JSON object, to be compared with all that FORMATS.md promises, and no more.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace tritgrad::test {

inline std::set<std::string> keys_of(const nlohmann::json& object) {
  std::set<std::string> names;
  for (const auto& item : object.items()) names.insert(item.key());
  return names;
}

}  // namespace tritgrad::test
