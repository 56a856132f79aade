#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "engine/text.h"

namespace tritgrad::test::test_text {
namespace {

TEST_CASE("text: edit distance counts insert, delete, substitute and swap") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("iris", "iris") == 0);
  CHECK(edit_distance("Iris", "iRIS") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("irsi", "iris") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("text: suggests close words only, the first of equals") {
  const std::vector<std::string> words = {"iris", "wdbc", "digits", "digitz"};
  CHECK(nearest("digit", words) == "digits");
  CHECK(nearest("w", words).empty());
  CHECK(nearest("elephant", words).empty());
  CHECK(nearest("9", std::vector<std::string>{"0", "1"}).empty());  // no letter would be left
  CHECK(nearest("ab", std::vector<std::string>{"cd", "ac"}) == "ac");
  CHECK(nearest("iris", {}).empty());
  CHECK(did_you_mean("irs", words) == "; did you mean 'iris'? Known: iris, wdbc, digits, digitz");
  CHECK(did_you_mean("elephant", words) == "; known: iris, wdbc, digits, digitz");
  const std::vector<std::string> many(21, "wine");
  CHECK(did_you_mean("wne", many) == "; did you mean 'wine'?");
  CHECK(did_you_mean("elephant", many).empty());
}

TEST_CASE("text: what is UTF-8 and what only looks like it") {
  for (const char* good : {"", "a", "\xC2\x80", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEF\xBF\xBF",
                           "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    CAPTURE(good);
    CHECK(is_utf8(good));
    CHECK(as_utf8(good) == good);
  }
  for (const char* bad :
       {"\x80", "\xC1\xBF", "\xC2", "\xC2 ", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xEF\xBF",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF\xFE", "a\xC3\xA4\xE4"}) {
    CAPTURE(bad);
    CHECK_FALSE(is_utf8(bad));
    CHECK(is_utf8(as_utf8(bad)));
  }
  CHECK(as_utf8("gr\xFCn") == "gr\uFFFDn");
  CHECK(as_utf8("\xC3\xA4\xE4") == "\u00E4\uFFFD");
}

}  // namespace
}  // namespace tritgrad::test::test_text
