#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/npy_dataset.h"
#include "engine/data/open_dataset.h"
#include "tests/support/compressed.h"
#include "tests/support/npy_files.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_npz {
namespace {

const std::string kX = npy_array<float>("<f4", "(2, 3)", {1, 2, 3, 4, 5, 6});
const std::string kY = npy_array<std::int64_t>("<i8", "(2,)", {-1, 1});

std::string refused(const std::string& bytes) {
  return refusal([&] { parse_npz(bytes, "d.npz"); });
}

TEST_CASE("npz: features and labels under their usual names, stored and deflated") {
  struct Names {
    const char *x, *y;
  };
  for (const bool deflate : {false, true}) {
    for (const Names names : {Names{"X.npy", "y.npy"}, Names{"x.npy", "Y.npy"},
                              Names{"data.npy", "target.npy"}, Names{"arr_0.npy", "arr_1.npy"}}) {
      CAPTURE(names.x);
      const std::string bytes =
          zip_file({{names.y, kY}, {"names.npy", "anything"}, {names.x, kX}}, deflate);
      const Dataset data = parse_npz(bytes, "d.npz");
      CHECK(data.rows == 2);
      CHECK(data.features == 3);
      CHECK(data.labels == std::vector<std::int32_t>{0, 1});
      float row[3];
      data.gather(1, row);
      CHECK(row[2] == 6.0f);
    }
  }
}

TEST_CASE("npz: training and test rows") {
  const std::string test_x = npy_array<float>("<f4", "(1, 3)", {7, 8, 9});
  const auto label = [](std::int64_t value) {
    return npy_array<std::int64_t>("<i8", "(1,)", {value});
  };
  const auto archive = [&](const std::string& x, const std::string& y) {
    return zip_file(
        {{"x_train.npy", kX}, {"y_train.npy", kY}, {"x_test.npy", x}, {"y_test.npy", y}}, true);
  };
  const Dataset data = parse_npz(archive(test_x, label(1)), "d.npz");
  CHECK(data.rows == 3);
  CHECK(data.published_test_rows == 1);
  CHECK(data.labels == std::vector<std::int32_t>{0, 1, 1});
  CHECK(contains(refused(archive(test_x, label(2))),
                 "d.npz, y_test.npy, row 0: label \"2\" is none of"));
  CHECK(contains(refused(archive(npy_array<float>("<f4", "(1, 2)", {7, 8}), label(1))),
                 "d.npz, x_test.npy: rows of another shape or type than in d.npz, x_train.npy"));
}

TEST_CASE("npz: which arrays are read is said where others are there") {
  const auto notes = [](const ZipEntries& entries) {
    return parse_npz(zip_file(entries, false), "d.npz").remarks.notes;
  };
  CHECK(notes({{"X.npy", kX}, {"y.npy", kY}}).empty());
  const auto both = notes({{"x_train.npy", kX}, {"y_train.npy", kY}, {"X.npy", kX}, {"y.npy", kY}});
  REQUIRE(both.size() == 1);
  CHECK(both[0] == "d.npz: X.npy, y.npy are read, x_train.npy, y_train.npy are not");
  CHECK(notes({{"X.npy", kX}, {"names.npy", kX}, {"y.npy", kY}}).at(0) ==
        "d.npz: X.npy, y.npy are read, names.npy is not");
}

TEST_CASE("npz: what cannot be read is refused by name") {
  CHECK(contains(refused(zip_file({{"a.npy", kX}, {"b.npy", kY}}, false)),
                 "d.npz: no arrays of features and labels found by name (it holds a.npy, b.npy); "
                 "save numpy.savez(path, X=features, y=labels)"));
  CHECK(contains(refused("PK\x03\x04 and no more"), "d.npz: this is no whole zip archive"));
  CHECK(contains(refused(""),
                 "d.npz: no arrays of features and labels found by name (it holds nothing)"));
  CHECK(contains(refused(zip_file({{"X.npy", kY}, {"y.npy", kY}}, true)),
                 "d.npz, X.npy: an array of 1 axis found"));
  const std::string whole = zip_file({{"X.npy", kX}, {"y.npy", kY}}, true);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    CAPTURE(n);
    CHECK(contains(refused(whole.substr(0, n)), "d.npz: "));
  }
  std::string damaged = zip_file({{"X.npy", kX}, {"y.npy", kY}}, false);
  damaged[40 + kX.size() - 10] ^= 1;  // a number
  CHECK(contains(refused(damaged), "the entry 'X.npy' is damaged"));
}

TEST_CASE("npz: what shrank too far to be believed is read when it is stored") {
  const std::vector<std::uint8_t> pixels(std::size_t{64} << 20);
  const std::string x = npy_array("|u1", "(2, 33554432)", pixels);
  const ZipEntries entries = {{"X.npy", x}, {"y.npy", kY}};
  CHECK(contains(refused(zip_file(entries, true)),
                 "cannot plausibly hold; save the arrays without compression (numpy.savez)"));
  CHECK(parse_npz(zip_file(entries, false), "d.npz").features == 33554432);
}

TEST_CASE("npz: as --data names it") {
  const TempDir folder;
  const std::string path = folder.write("mine.npz", zip_file({{"X.npy", kX}, {"y.npy", kY}}, true));
  CHECK(data_source(path, "").kind == DataSource::Kind::kNpz);
  CHECK(open_dataset(path).name == "mine");
  CHECK(contains(refusal([&] { open_dataset(path + ".npz"); }), "no data set or file"));
}

}  // namespace
}  // namespace tritgrad::test::test_npz
