// Texts that everybody has alike: fetched by name, and verified, into a cache folder.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tritgrad {

struct KnownText {
  const char* name;
  std::int64_t bytes;
  const char* source;
  const char* licence;
};

std::span<const KnownText> known_texts();

// Returns the text of this name, or null.
const KnownText* find_known_text(std::string_view name);

// Returns the file of a text that was fetched into `cache_folder`. Throws Error where it is not
// there, with the command that fetches it, to which `fetch_arguments` are added.
std::string fetched_text(const KnownText& text, const std::string& cache_folder,
                         const std::string& fetch_arguments);

}  // namespace tritgrad
