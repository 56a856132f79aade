// Whole numbers of a file's JSON. nlohmann's own get<>() takes any number for them: of one with a
// point it drops what is behind it, and where the type does not hold it, anything may happen.
#pragma once

#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace tritgrad {

// Whether it is a whole number that the type holds, written as one.
template <std::integral Whole, typename Json>
bool holds_whole(const Json& json) {
  if (json.is_number_unsigned()) {
    return std::in_range<Whole>(json.template get<std::uint64_t>());
  }
  return json.is_number_integer() && std::in_range<Whole>(json.template get<std::int64_t>());
}

// Throws what the library throws for other wrong types.
template <std::integral Whole, typename Json>
Whole whole_number(const Json& json) {
  if (!holds_whole<Whole>(json)) {
    constexpr int kWrongType = 302;  // the library's number
    throw Json::type_error::create(
        kWrongType, "type must be a whole number, but is " + std::string(json.type_name()), &json);
  }
  return json.template get<Whole>();
}

}  // namespace tritgrad
