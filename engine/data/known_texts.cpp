#include "engine/data/known_texts.h"

#include <filesystem>

#include "engine/check.h"

namespace tritgrad {
namespace {

namespace fs = std::filesystem;

constexpr KnownText kKnownTexts[] = {
    {"sotu", 10761413, "Presidents of the United States, State of the Union addresses",
     "public domain: PDDL 1.0, CC0 1.0"},
    {"austen", 4025029, "Jane Austen, six novels, 1811 to 1817", "public domain"},
};

}  // namespace

std::span<const KnownText> known_texts() { return kKnownTexts; }

const KnownText* find_known_text(std::string_view name) {
  for (const KnownText& text : kKnownTexts) {
    if (name == text.name) return &text;
  }
  return nullptr;
}

std::string fetched_text(const KnownText& text, const std::string& cache_folder,
                         const std::string& fetch_arguments) {
  const fs::path file = fs::path(cache_folder) / text.name / concat(text.name, ".txt");
  std::error_code error;
  check(fs::exists(file, error), "text ", text.name, " is not in ", file.parent_path().string(),
        "; run: tritgrad data fetch ", text.name, fetch_arguments);
  const auto bytes = static_cast<std::int64_t>(fs::file_size(file, error));
  check(!error && bytes == text.bytes, file.string(), ": ", bytes, " bytes found, ", text.bytes,
        " expected; run: tritgrad data fetch ", text.name, fetch_arguments);
  return file.string();
}

}  // namespace tritgrad
