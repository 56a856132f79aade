// The CSV files of this folder, compiled into the library (embed.cmake writes the definitions).
#pragma once

#include <span>
#include <string_view>

namespace tritgrad {

struct EmbeddedFile {
  std::string_view name;  // without ".csv"
  // The text in pieces, because compilers limit the length of one string literal.
  std::span<const std::string_view> pieces;
};

std::span<const EmbeddedFile> embedded_files();

}  // namespace tritgrad
