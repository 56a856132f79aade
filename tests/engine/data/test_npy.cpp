#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "engine/data/npy.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_npy {
namespace {

std::string npy_file(const std::string& dictionary, const std::string& payload, char version = 1) {
  std::string header = dictionary + "\n";
  std::string bytes = "\x93NUMPY";
  bytes += version;
  bytes += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    bytes += static_cast<char>(header.size() >> (8 * i) & 255);
  }
  return bytes + header + payload;
}

std::string dictionary(const std::string& descr, const std::string& shape,
                       const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

template <typename T>
std::string array(const std::string& descr, const std::string& shape, std::vector<T> values) {
  std::string payload(values.size() * sizeof(T), '\0');
  std::memcpy(payload.data(), values.data(), payload.size());
  return npy_file(dictionary(descr, shape), payload);
}

std::string refused(const std::string& x, const std::string& y) {
  return refusal([&] { parse_npy_pair(x, y, "x.npy", "y.npy"); });
}

const std::string kX = array<float>("<f4", "(2, 3)", {1, 2, 3, 4, 5, 6});
const std::string kY = array<std::int64_t>("<i8", "(2,)", {-1, 1});

template <typename T>
void check_type(const std::string& descr) {
  CAPTURE(descr);
  const Dataset data = parse_npy_pair(array<T>(descr, "(2, 3)", {1, 2, 3, 4, 5, 6}), kY, "x", "y");
  float row[3];
  data.gather(1, row);
  CHECK(row[0] == 4.0f);
  CHECK(row[2] == 6.0f);
  const Dataset labelled = parse_npy_pair(kX, array<T>(descr, "(2, 1)", {7, 3}), "x", "y");
  CHECK(labelled.labels == std::vector<std::int32_t>{1, 0});
  CHECK(labelled.class_names == std::vector<std::string>{"3", "7"});
}

TEST_CASE("npy: every supported type, as features and as labels") {
  check_type<float>("<f4");
  check_type<double>("<f8");
  check_type<std::uint8_t>("|u1");
  check_type<std::int8_t>("|i1");
  check_type<std::int16_t>("<i2");
  check_type<std::int32_t>("<i4");
  check_type<std::int64_t>("<i8");
  check_type<std::uint16_t>("<u2");
  check_type<std::uint32_t>("<u4");
  check_type<std::uint64_t>("<u8");
  const Dataset data = parse_npy_pair(kX, array<char>("|b1", "(2,)", {1, 0}), "x", "y");
  CHECK(data.labels == std::vector<std::int32_t>{1, 0});
}

TEST_CASE("npy: uint8 stays bytes, and three axes are images") {
  const auto pixels = array<std::uint8_t>("|u1", "(2, 2, 1)", {0, 255, 7, 8});
  const Dataset data = parse_npy_pair(pixels, kY, "x", "y");
  CHECK(data.element == Element::kByte);
  CHECK(data.image == ImageShape{2, 1, 1});
  CHECK(data.features == 2);
  CHECK(!parse_npy_pair(kX, kY, "x", "y").is_image());
}

TEST_CASE("npy: format versions 1 to 3") {
  const std::string payload(24, '\0');
  for (char version : {'\1', '\2', '\3'}) {
    CHECK(parse_npy(npy_file(dictionary("<f4", "(2, 3)"), payload, version), "x").size() == 6);
  }
  CHECK(contains(refused(npy_file(dictionary("<f4", "(2, 3)"), payload, 4), kY), "version 4"));
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
    return npy_file(dictionary(descr, shape, order), six);
  };
  CHECK(contains(refused(file("<f4", "(2, 3)", "True"), kY), "Fortran (column) order"));
  CHECK(contains(refused(file(">f4", "(2, 3)"), kY), "big-endian type '>f4'"));
  CHECK(contains(refused(file("|O", "(2, 3)"), kY), "Python objects"));
  CHECK(contains(refused(file("<f2", "(2, 3)"), kY), "type '<f2' found"));
  CHECK(contains(refused(file("<f4", "(2, 2)"), kY), "24 bytes of values found, 16 expected"));
  CHECK(contains(refused(file("<f4", "(2, 4)"), kY), "truncated"));
  CHECK(contains(refused(file("<f4", "(0, 3)"), kY), "the array is empty"));
  CHECK(contains(refused(file("<f4", "(6,)"), kY), "an array of 1 axes"));
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
  CHECK(contains(refused(array<float>("<f4", "(2, 2)", {1, 2, nan, 4}), kY), "row 1, column 0"));
  CHECK(contains(refused(array<double>("<f8", "(2, 2)", {1, 1e39, 3, 4}), kY), "row 0, column 1"));
  const auto label = [](double value) { return array<double>("<f8", "(2,)", {0, value}); };
  CHECK(contains(refused(kX, label(0.5)), "the label of row 1 is 0.5"));
  CHECK(contains(refused(kX, label(std::numeric_limits<double>::infinity())), "row 1 is inf"));
  CHECK(contains(refused(kX, label(static_cast<double>(nan))), "the label of row 1"));
  CHECK(contains(refused(kX, label(0)), "all 2 rows have the label \"0\""));
  CHECK(contains(refused(kX, array<float>("<f4", "(2, 2)", {1, 0, 0, 1})), "argmax"));
}

TEST_CASE("npy: files") {
  const TempDir dir;
  const Dataset data = read_npy_pair(dir.write("train.npy", kX), dir.write("y.npy", kY));
  CHECK(data.name == "train");
  CHECK(data.class_names == std::vector<std::string>{"-1", "1"});
}

}  // namespace
}  // namespace tritgrad::test::test_npy
