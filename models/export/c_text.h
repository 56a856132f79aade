// Pieces of C: names, strings, comments, numbers and tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/check.h"

namespace tritgrad {

// Returns the text as a C identifier, by which all names of a header begin: what is no letter or
// digit becomes an underscore, and "model_" is put before a digit or an underscore. Throws Error
// for a text without any letter or digit of ASCII.
std::string c_identifier(const std::string& text);

// Returns a name for each text, all of them different: its letters and digits, underscores for the
// rest, at most 60 characters, and a number where another text has the same. They are no
// identifiers before something is put in front of them.
std::vector<std::string> c_name_endings(const std::vector<std::string>& texts);

// Returns the text with letters of ASCII as capitals.
std::string upper_case(std::string text);

// Returns a text of which nothing can end a comment, nest one, or be a trigraph.
std::string c_comment_text(const std::string& text);

// Returns a C string: what is not plain ASCII is in octal, and no trigraph can come about.
std::string c_string(const std::string& text);

// Returns the shortest text that a compiler reads as this number; NAN of math.h for what is none.
std::string c_literal(float x);
std::string c_literal(double x);
inline std::string c_literal(std::uint8_t x) { return std::to_string(x); }
inline std::string c_literal(std::int8_t x) { return std::to_string(x); }
inline std::string c_literal(std::uint32_t x) { return std::to_string(x); }

// Returns "  first, second,\n  third,\n", in lines of at most 100 characters.
std::string c_list(const std::vector<std::string>& items);

// Returns "static const TYPE NAME[n] = {...};".
template <typename Number>
std::string c_table(const std::string& type, const std::string& name,
                    const std::vector<Number>& numbers) {
  std::vector<std::string> items;
  items.reserve(numbers.size());
  for (const Number x : numbers) items.push_back(c_literal(x));
  return concat("static const ", type, " ", name, "[", numbers.size(), "] = {\n", c_list(items),
                "};\n");
}

}  // namespace tritgrad
