// Extents: what no shape can have, and how a shape is read as a matrix.
#include <doctest/doctest.h>

#include "engine/shape.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_shape {

TEST_CASE("shape: more than four axes and negative extents are refused") {
  CHECK(refusal([] { Shape({1, 2, 3, 4, 5}); }) == "Shape: 5 axes given, at most 4 supported");
  CHECK(refusal([] { Shape({3, -2}); }) == "Shape: axis 1 has negative extent -2");
  CHECK(refusal([] { Shape({-1}); }) == "Shape: axis 0 has negative extent -1");
}

TEST_CASE("shape: none to four axes, empty ones too, with earlier axes as rows") {
  struct Expected {
    Shape shape;
    std::int64_t rows, cols;
    const char* text;
  };
  for (const Expected& expected :
       {Expected{{}, 1, 1, "[]"}, Expected{{7}, 1, 7, "[7]"}, Expected{{2, 3}, 2, 3, "[2 x 3]"},
        Expected{{2, 3, 4, 5}, 24, 5, "[2 x 3 x 4 x 5]"}, Expected{{4, 0}, 4, 0, "[4 x 0]"}}) {
    CAPTURE(expected.text);
    CHECK(expected.shape.str() == expected.text);
    CHECK(expected.shape.rows() == expected.rows);
    CHECK(expected.shape.cols() == expected.cols);
    CHECK(expected.shape.size() == expected.rows * expected.cols);
  }
}

}  // namespace tritgrad::test::test_shape
