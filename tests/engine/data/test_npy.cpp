#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "engine/data/npy.h"
#include "engine/data/npy_dataset.h"
#include "tests/support/npy_files.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_npy {
namespace {

Dataset parse_npy_pair(const std::string& x, const std::string& y) {
  const std::array<NpyPair, 1> pairs = {NpyPair{x, y, "x.npy", "y.npy"}};
  return parse_npy_pairs(pairs, "t");
}

std::string refused(const std::string& x, const std::string& y) {
  return refusal([&] { parse_npy_pair(x, y); });
}

const std::string kX = npy_array<float>("<f4", "(2, 3)", {1, 2, 3, 4, 5, 6});
const std::string kY = npy_array<std::int64_t>("<i8", "(2,)", {-1, 1});

template <typename T>
void check_type(const std::string& descr) {
  CAPTURE(descr);
  const Dataset data = parse_npy_pair(npy_array<T>(descr, "(2, 3)", {1, 2, 3, 4, 5, 6}), kY);
  float row[3];
  data.gather(1, row);
  CHECK(row[0] == 4.0f);
  CHECK(row[2] == 6.0f);
  const Dataset labelled = parse_npy_pair(kX, npy_array<T>(descr, "(2, 1)", {7, 3}));
  CHECK(labelled.labels == std::vector<std::int32_t>{1, 0});
  CHECK(labelled.class_names == std::vector<std::string>{"3", "7"});
}

TEST_CASE("npy: every supported type, as features and as labels") {
  for (const char* order : {"<", ">"}) {
    const auto type = [&](const char* name) { return std::string(order) + name; };
    check_type<float>(type("f4"));
    check_type<double>(type("f8"));
    check_type<std::int16_t>(type("i2"));
    check_type<std::int32_t>(type("i4"));
    check_type<std::int64_t>(type("i8"));
    check_type<std::uint16_t>(type("u2"));
    check_type<std::uint32_t>(type("u4"));
    check_type<std::uint64_t>(type("u8"));
  }
  check_type<std::uint8_t>("|u1");
  check_type<std::int8_t>("|i1");
  const Dataset data = parse_npy_pair(kX, npy_array<char>("|b1", "(2,)", {1, 0}));
  CHECK(data.labels == std::vector<std::int32_t>{1, 0});
}

TEST_CASE("npy: uint8 stays bytes, and three axes are images") {
  const auto pixels = npy_array<std::uint8_t>("|u1", "(2, 2, 1)", {0, 255, 7, 8});
  const Dataset data = parse_npy_pair(pixels, kY);
  CHECK(data.element == Element::kByte);
  CHECK(data.image == ImageShape{2, 1, 1});
  CHECK(data.features == 2);
  CHECK(!parse_npy_pair(kX, kY).is_image());
}

TEST_CASE("npy: format versions 1 to 3") {
  const std::string payload(24, '\0');
  for (char version : {'\1', '\2', '\3'}) {
    CHECK(parse_npy(npy_file(npy_dictionary("<f4", "(2, 3)"), payload, version), "x").size() == 6);
  }
  CHECK(contains(refused(npy_file(npy_dictionary("<f4", "(2, 3)"), payload, 4), kY), "version 4"));
}

TEST_CASE("npy: every truncation is refused by name") {
  for (std::size_t n = 0; n < kX.size(); ++n) {
    CAPTURE(n);
    CHECK(contains(refused(kX.substr(0, n), kY), "x.npy: "));
  }
  for (std::size_t n = 0; n < kY.size(); ++n) {
    CAPTURE(n);
    CHECK(contains(refused(kX, kY.substr(0, n)), "y.npy: "));
  }
}

TEST_CASE("npy: what cannot be read is refused with the reason") {
  const std::string six(24, '\0');
  const auto file = [&](const std::string& descr, const std::string& shape,
                        const std::string& order = "False") {
    return npy_file(npy_dictionary(descr, shape, order), six);
  };
  CHECK(contains(refused(file("|O", "(2, 3)"), kY), "Python objects"));
  CHECK(contains(refused(file("<f16", "(2, 3)"), kY), "type '<f16' found"));
  CHECK(contains(refused(file("<c8", "(2, 3)"), kY), "type '<c8' found"));
  CHECK(contains(refused(file("<f4", "(2, 2)"), kY), "24 bytes of values found, 16 expected"));
  CHECK(contains(refused(file("<f4", "(2, 4)"), kY), "truncated"));
  CHECK(contains(refused(file("<f4", "(0, 3)"), kY), "the array is empty, its shape is 0 x 3"));
  CHECK(contains(refused(file("<f4", "(6,)"), kY), "an array of 1 axis found"));
  CHECK(contains(refused(file("<f4", "(2, 3, 1)"), kY), "an array of 3 axes"));
  CHECK(contains(refused(file("<f4", "(6, 1)"), kY), "holds 6 rows but y.npy holds 2 labels"));
  CHECK(contains(refused(file("<f4", "(9223372036854775807, 9223372036854775807)"), kY),
                 "fewer than the shape needs"));
  CHECK(contains(refused(file("<f4", "(9223372036854775808,)"), kY), "the shape must hold"));
  CHECK(contains(refused(file("<f4", "(-2, 3)"), kY), "the shape must hold"));
  CHECK(contains(refused(npy_file("{'descr': [('a', '<f4')], }", six), kY), "records"));
  for (const char* bad : {"", "{", "{}", "{'descr': '<f4'}", "{'descr': '<f4", "[1]",
                          "{'shape': (2, 3), 'shape': (2, 3)}", "{'colour': 1}",
                          "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 3)}",
                          "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x"}) {
    CAPTURE(bad);
    CHECK(contains(refused(npy_file(bad, six), kY), "x.npy: bad .npy header"));
  }
}

TEST_CASE("npy: bad values are refused with row and column") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(
      contains(refused(npy_array<float>("<f4", "(2, 2)", {1, 2, nan, 4}), kY), "row 1, column 0"));
  CHECK(contains(refused(npy_array<double>("<f8", "(2, 2)", {1, 1e39, 3, 4}), kY),
                 "row 0, column 1"));
  const auto label = [](double value) { return npy_array<double>("<f8", "(2,)", {0, value}); };
  CHECK(contains(refused(kX, label(0.5)), "the label of row 1 is 0.5"));
  CHECK(contains(refused(kX, label(std::numeric_limits<double>::infinity())), "row 1 is inf"));
  CHECK(contains(refused(kX, label(static_cast<double>(nan))), "the label of row 1"));
  CHECK(contains(refused(kX, label(0)), "all 2 rows have the label \"0\""));
  CHECK(contains(refused(kX, npy_array<float>("<f4", "(2, 2)", {1, 0, 0, 1})), "argmax"));
  CHECK(contains(refused(kX, label(static_cast<double>(nan))), "fill or remove the row"));
}

TEST_CASE("npy: float16 has the values of IEEE 754, all of them") {
  for (int bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const std::string bytes = npy_array<std::uint16_t>("<f2", "(1,)", {half});
    const NpyArray array = parse_npy(bytes, "x");
    const double value = array.number(0);
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double sign = bits >> 15 == 0 ? 1.0 : -1.0;
    if (exponent == 31) {
      CHECK((fraction == 0 ? value == sign * std::numeric_limits<double>::infinity()
                           : std::isnan(value)));
    } else {
      const double magnitude = exponent == 0
                                   ? fraction * 0x1p-24
                                   : (1.0 + fraction / 1024.0) * std::pow(2, exponent - 15);
      CHECK(value == sign * magnitude);
      CHECK(std::signbit(value) == (sign < 0));
    }
  }
}

// The same numbers in C order, [n x d] or [n x height x width], and in Fortran order.
TEST_CASE("npy: Fortran order gives the rows of C order") {
  const std::vector<float> by_rows = {1, 2, 3, 4, 5, 6}, by_columns = {1, 4, 2, 5, 3, 6};
  for (const char* descr : {"<f4", ">f4"}) {
    const Dataset data = parse_npy_pair(npy_array(descr, "(2, 3)", by_columns, true), kY);
    CHECK(std::vector<float>(data.values.as<float>(), data.values.as<float>() + 6) == by_rows);
  }
  // Two images of 2 x 3 pixels: element (n, i, j) lies at n + 2 i + 4 j.
  std::vector<std::uint8_t> rows(12), columns(12);
  for (std::size_t n = 0; n < 2; ++n) {
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::size_t j = 0; j < 3; ++j) {
        const auto shade = static_cast<std::uint8_t>(100 * n + 10 * i + j);
        rows[n * 6 + i * 3 + j] = columns[n + 2 * i + 4 * j] = shade;
      }
    }
  }
  const Dataset images = parse_npy_pair(npy_array("|u1", "(2, 2, 3)", columns, true), kY);
  CHECK(images.image == ImageShape{2, 3, 1});
  const auto* pixels = images.values.as<std::uint8_t>();
  CHECK(std::vector<std::uint8_t>(pixels, pixels + 12) == rows);
}

TEST_CASE("npy: any shape in any order is the same array") {
  std::mt19937 random(1);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<std::int64_t> extents(1 + random() % 4);
    std::int64_t size = 1;
    std::string shape = "(";
    for (std::int64_t& extent : extents) {
      extent = 1 + static_cast<std::int64_t>(random() % 4);
      size *= extent;
      shape += std::to_string(extent) + ", ";
    }
    shape += ")";
    // Elements are their own places in C order.
    std::vector<std::int32_t> in_c(static_cast<std::size_t>(size)), in_fortran(in_c.size());
    for (std::size_t i = 0; i < in_c.size(); ++i) {
      std::size_t rest = i, at = 0;
      std::vector<std::size_t> index(extents.size());
      for (std::size_t axis = extents.size(); axis-- > 0;) {
        index[axis] = rest % static_cast<std::size_t>(extents[axis]);
        rest /= static_cast<std::size_t>(extents[axis]);
      }
      for (std::size_t axis = extents.size(); axis-- > 0;) {
        at = at * static_cast<std::size_t>(extents[axis]) + index[axis];
      }
      in_c[i] = in_fortran[at] = static_cast<std::int32_t>(i);
    }
    for (const bool fortran : {false, true}) {
      CAPTURE(shape);
      const std::string bytes = npy_array("<i4", shape, fortran ? in_fortran : in_c, fortran);
      const NpyArray array = parse_npy(bytes, "x");
      const std::vector<std::int64_t> places = array.places_in_row();
      std::int32_t expected = 0;
      for (std::int64_t row = 0; row < extents[0]; ++row) {
        for (std::int64_t place : places) {
          CHECK(array.number(row * array.row_stride() + place) == expected++);
        }
      }
    }
  }
}

TEST_CASE("npy: labels that are texts are class names") {
  using Names = std::vector<std::string>;
  const std::vector<std::u32string> texts = {U"zoë", U"ant"};
  for (const char* descr : {"<U4", ">U4"}) {
    const Dataset data = parse_npy_pair(kX, npy_texts(descr, "(2,)", texts));
    CHECK(data.class_names == Names{"ant", "zoë"});
    CHECK(data.labels == std::vector<std::int32_t>{1, 0});
  }
  CHECK(parse_npy_pair(kX, npy_texts("|S4", "(2,)", {U"b", U"a"})).class_names == Names{"a", "b"});
  // "10" comes behind "9" where all are numbers.
  CHECK(parse_npy_pair(kX, npy_texts("<U4", "(2,)", {U"10", U"9"})).class_names ==
        Names{"9", "10"});
  CHECK(
      contains(refused(kX, npy_texts("<U4", "(2,)", {U"a", U""})), "the label of row 1 is empty"));
  CHECK(
      contains(refused(kX, npy_texts("|S4", "(2,)", {U"a", U"ë"})), "save bytes of another kind"));
  CHECK(contains(refused(kX, npy_texts("<U4", "(2,)", {U"a", U"\xD800"})), "row 1 is no Unicode"));
  CHECK(contains(refused(npy_texts("<U4", "(2, 1)", texts), kY), "texts found, numbers expected"));
  CHECK(contains(refused(kX, npy_file(npy_dictionary("<U0", "(2,)"), "")), "every text"));
}

TEST_CASE("npy: large offsets are subtracted in double, and a model keeps them") {
  const auto times = [](double a, double b) {
    return npy_array<double>("<f8", "(4, 2)", {a, 0.5, b, 1, a, 2, b, 4});
  };
  const std::string y = npy_array<std::int64_t>("<i8", "(4,)", {0, 1, 0, 1});
  const Dataset data = parse_npy_pair(times(1.7e9, 1.7e9 + 10), y);
  REQUIRE(data.schema);
  CHECK(data.remarks.warnings.empty());
  CHECK(data.schema->features() == 2);
  CHECK(data.schema->columns[1].offset == 0.0);
  float first[2], second[2];
  data.gather(0, first);
  data.gather(1, second);
  CHECK(second[0] - first[0] == 10.0f);
  CHECK(second[1] == 1.0f);
  // Rows of one class, as the model sees them.
  const std::string x = npy_array<double>("<f8", "(1, 2)", {1.7e9 + 5, 3});
  const std::string label = npy_array<double>("<f8", "(1,)", {1});
  const std::array<NpyPair, 1> pairs = {NpyPair{x, label, "x", "y"}};
  TableSchema schema = *data.schema;
  schema.class_names = data.class_names;
  const Dataset scored = parse_npy_pairs(pairs, "t", &schema);
  scored.gather(0, second);
  CHECK(second[0] - first[0] == 5.0f);
  CHECK(scored.labels == std::vector<std::int32_t>{1});
  // Whole numbers too; what fits has no schema, and what no offset helps is warned of.
  CHECK(parse_npy_pair(npy_array<std::int64_t>("<i8", "(4, 1)",
                                               {1700000000, 1700000010, 1700000000, 1700000010}),
                       y)
            .schema);
  CHECK(!parse_npy_pair(times(1, 2), y).schema);
  const Dataset lost =
      parse_npy_pair(npy_array<double>("<f8", "(4, 1)", {0, 1, 1e12, 1e12 + 1}), y);
  REQUIRE(lost.remarks.warnings.size() == 1);
  CHECK(contains(lost.remarks.warnings[0],
                 "x.npy: numbers of column 0 that differ become the same in fp32"));
}

// What numpy makes of the advice, as files.
TEST_CASE("npy: advice that is followed works") {
  const std::vector<float> six = {1, 2, 3, 4, 5, 6};
  const auto reads = [](const std::string& x, const std::string& y) {
    CHECK(parse_npy_pair(x, y).rows == 2);
  };
  // Labels as one row need no advice.
  reads(kX, npy_array<std::int32_t>("<i4", "(1, 2)", {1, 2}));
  CHECK(contains(refused(npy_array("<f4", "(2, 0)", std::vector<float>{}), kY),
                 "x.npy: the array is empty, its shape is 2 x 0; save one that has rows"));
  // array.reshape(-1, 1)
  CHECK(contains(refused(npy_array<float>("<f4", "(2,)", {1, 2}), kY), "array.reshape(-1, 1)"));
  reads(npy_array<float>("<f4", "(2, 1)", {1, 2}), kY);
  // array.reshape(len(array), -1), or array.astype('uint8')
  const std::string cube = refused(npy_array("<f4", "(2, 3, 1)", six), kY);
  CHECK(contains(cube, "array.reshape(len(array), -1), or grey images as array.astype('uint8')"));
  reads(npy_array("<f4", "(2, 3)", six), kY);
  reads(npy_array<std::uint8_t>("|u1", "(2, 3, 1)", {1, 2, 3, 4, 5, 6}), kY);
  // numpy.argmax(y, axis=1)
  const std::string one_hot = refused(kX, npy_array<double>("<f8", "(2, 3)", {0, 1, 0, 1, 0, 0}));
  CHECK(contains(one_hot, "save numpy.argmax(y, axis=1) of one-hot labels"));
  reads(kX, npy_array<std::int64_t>("<i8", "(2,)", {1, 0}));
  // numpy.unique(y, return_inverse=True)[1]
  const std::string measured = refused(kX, npy_array<double>("<f8", "(2,)", {0.25, 0.5}));
  CHECK(contains(measured, "number the classes: save numpy.unique(y, return_inverse=True)[1]"));
  reads(kX, npy_array<std::int64_t>("<i8", "(2,)", {0, 1}));
  // array.astype('float32'), array.astype(str), numpy.char.decode(y, 'latin-1')
  const std::string objects = npy_file(npy_dictionary("|O", "(2,)"), "pickle");
  CHECK(contains(refused(kX, objects), "or labels that are words as array.astype(str)"));
  reads(kX, npy_texts("<U4", "(2,)", {U"a", U"ë"}));
  CHECK(
      contains(refused(kX, npy_array<float>("<f4", "(3, 2)", six)),
               "y.npy: an array of shape 3 x 2 found, one label per row expected; save an array"));
}

TEST_CASE("npy: files") {
  const TempDir dir;
  const Dataset data = read_npy_pair(dir.write("train.npy", kX), dir.write("y.npy", kY));
  CHECK(data.name == "train");
  CHECK(data.class_names == std::vector<std::string>{"-1", "1"});
}

}  // namespace
}  // namespace tritgrad::test::test_npy
