#include <doctest/doctest.h>

#include <filesystem>

#include "engine/data/known_texts.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_known_texts {
namespace {

TEST_CASE("known texts: there are two, found by name") {
  CHECK(known_texts().size() == 2);
  for (const KnownText& text : known_texts()) CHECK(find_known_text(text.name) == &text);
  CHECK(find_known_text("iris") == nullptr);
  CHECK(find_known_text("") == nullptr);
}

TEST_CASE("known texts: a fetched one is a file of its size, else the fetch is named") {
  const TempDir dir;
  const KnownText& text = *find_known_text("sotu");
  const std::string cache = dir.path().string();
  const auto said = [&] { return refusal([&] { fetched_text(text, cache, " --cache x"); }); };
  CHECK(said() ==
        "text sotu is not in " + cache + "/sotu; run: tritgrad data fetch sotu --cache x");
  const std::string path = dir.write("sotu/sotu.txt", "short");
  CHECK(said() == path + ": 5 bytes found, " + std::to_string(text.bytes) +
                      " expected; run: tritgrad data fetch sotu --cache x");
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(text.bytes));
  CHECK(fetched_text(text, cache, "") == path);
}

}  // namespace
}  // namespace tritgrad::test::test_known_texts
