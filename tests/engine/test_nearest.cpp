#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "engine/nearest.h"

namespace tritgrad::test::test_nearest {
namespace {

TEST_CASE("nearest: edit distance counts insert, delete, substitute and swap") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("iris", "iris") == 0);
  CHECK(edit_distance("Iris", "iRIS") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("irsi", "iris") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("nearest: suggests close words only, the first of equals") {
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

}  // namespace
}  // namespace tritgrad::test::test_nearest
