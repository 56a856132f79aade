#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/idx.h"
#include "engine/memory/ledger.h"
#include "tests/support/compressed.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_idx {
namespace {

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

std::string images(std::uint32_t n, std::uint32_t height, std::uint32_t width) {
  std::string bytes = big_endian(0x803) + big_endian(n) + big_endian(height) + big_endian(width);
  for (std::uint32_t i = 0; i < n * height * width; ++i) bytes += static_cast<char>(i * 7 % 256);
  return bytes;
}

std::string labels(const std::vector<int>& values) {
  std::string bytes = big_endian(0x801) + big_endian(static_cast<std::uint32_t>(values.size()));
  for (int value : values) bytes += static_cast<char>(value);
  return bytes;
}

Dataset parse(const std::string& x, const std::string& y) {
  const std::array<IdxPair, 1> parts = {IdxPair{x, y, "x.idx", "y.idx"}};
  return parse_idx(parts, "t");
}

std::string refused(const std::string& x, const std::string& y) {
  return refusal([&] { parse(x, y); });
}

const std::string kX = images(3, 2, 2);
const std::string kY = labels({1, 0, 1});

TEST_CASE("idx: raw and gzip files give the same bytes") {
  for (bool packed : {false, true}) {
    const Dataset data = packed ? parse(gzip(kX), gzip(kY)) : parse(kX, kY);
    CHECK(data.rows == 3);
    CHECK(data.features == 4);
    CHECK(data.is_image());
    CHECK(data.element == Element::kByte);
    CHECK(data.labels == std::vector<std::int32_t>{1, 0, 1});
    CHECK(data.class_names == std::vector<std::string>{"0", "1"});
    CHECK(data.published_test_rows == 0);
    float row[4];
    data.gather(2, row);
    for (int j = 0; j < 4; ++j) CHECK(row[j] == static_cast<float>((8 + j) * 7));
  }
}

TEST_CASE("idx: pixels stay one byte each, and the ledger knows") {
  const std::int64_t before = ledger::live(Category::kData);
  const Dataset data = parse(images(2, 10, 10), labels({0, 1}));
  CHECK(ledger::live(Category::kData) - before == 2 * (10 * 10 + 4));  // with labels
}

TEST_CASE("idx: a folder, with the published test set at the end") {
  const TempDir dir;
  dir.write("train-images-idx3-ubyte", kX);
  dir.write("train-labels-idx1-ubyte.gz", gzip(kY));
  dir.write("t10k-images.idx3-ubyte", images(2, 2, 2));
  CHECK(
      contains(refusal([&] { read_idx_folder(dir.path().string(), "t"); }), "no file t10k-labels"));
  dir.write("t10k-labels-idx1-ubyte", labels({0, 2}));
  CHECK(contains(refusal([&] { read_idx_folder(dir.path().string(), "t"); }),
                 "row 1 has label 2, which no training row has"));
  dir.write("t10k-labels-idx1-ubyte", labels({0, 0}));
  const Dataset data = read_idx_folder(dir.path().string(), "t");
  CHECK(data.rows == 5);
  CHECK(data.published_test_rows == 2);
  CHECK(data.labels == std::vector<std::int32_t>{1, 0, 1, 0, 0});
  float row[4];
  data.gather(3, row);  // the first test image
  CHECK(row[1] == 7.0f);
  dir.write("t10k-images.idx3-ubyte", images(2, 1, 4));
  CHECK(contains(refusal([&] { read_idx_folder(dir.path().string(), "t"); }),
                 "2 x 2 expected as in"));
}

TEST_CASE("idx: classes are the values that occur") {
  const Dataset data = parse(kX, labels({26, 1, 26}));
  CHECK(data.labels == std::vector<std::int32_t>{1, 0, 1});
  CHECK(data.class_names == std::vector<std::string>{"1", "26"});
}

TEST_CASE("idx: a folder of EMNIST's names, whose labels begin with 1") {
  const TempDir dir;
  const auto write = [&](const std::string& set) {
    dir.write(set + "-train-images-idx3-ubyte.gz", gzip(kX));
    dir.write(set + "-train-labels-idx1-ubyte.gz", gzip(labels({1, 2, 26})));
    dir.write(set + "-test-images-idx3-ubyte.gz", gzip(images(2, 2, 2)));
    dir.write(set + "-test-labels-idx1-ubyte.gz", gzip(labels({26, 1})));
  };
  const std::string folder = dir.path().string();
  CHECK(!has_idx_files(folder));
  write("emnist-letters");
  const Dataset data = read_idx_folder(folder, "letters");
  CHECK(data.labels == std::vector<std::int32_t>{0, 1, 2, 2, 0});
  CHECK(data.class_names == std::vector<std::string>{"1", "2", "26"});
  CHECK(data.published_test_rows == 2);
  write("emnist-digits");
  CHECK(contains(refusal([&] { read_idx_folder(folder, "t"); }),
                 "emnist-digits-train-images-idx3-ubyte.gz and "
                 "emnist-letters-train-images-idx3-ubyte.gz are both there; move the four files"));
  // What the message advises.
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("emnist-digits")) continue;
    std::filesystem::create_directories(dir / "digits");
    std::filesystem::rename(entry.path(), dir / "digits" / name);
  }
  CHECK(read_idx_folder(folder, "t").rows == 5);
  CHECK(read_idx_folder(dir / "digits", "t").rows == 5);
}

TEST_CASE("idx: every truncation is refused by name") {
  for (const std::string& x : {kX, gzip(kX)}) {
    for (std::size_t n = 0; n < x.size(); ++n) {
      CAPTURE(n);
      CHECK(contains(refused(x.substr(0, n), kY), "x.idx: "));
    }
  }
  for (const std::string& y : {kY, gzip(kY)}) {
    for (std::size_t n = 0; n < y.size(); ++n) {
      CAPTURE(n);
      CHECK(contains(refused(kX, y.substr(0, n)), "y.idx: "));
    }
  }
}

TEST_CASE("idx: wrong contents are refused by name") {
  CHECK(contains(refused(kX + "z", kY), "1 trailing byte after"));
  CHECK(contains(refused(gzip(kX) + "z", kY), "1 trailing byte after the gzip stream"));
  CHECK(contains(refused(gzip(kX + "z"), kY), "more than the 28 bytes promised"));
  CHECK(contains(refused(gzip(kX.substr(0, 27)), kY), "27 bytes found after decompression, 28"));
  CHECK(contains(refused(labels({0, 1, 0, 1, 0, 1, 0, 1}), kY), "expected 2051 (IDX images"));
  CHECK(contains(refused(kX, kX), "expected 2049 (IDX labels"));
  CHECK(contains(refused(kX, labels({0, 1})), "holds 3 images but y.idx holds 2 labels"));
  CHECK(contains(refused(kX, labels({0, 0, 0})), "all 3 labels are 0"));
  CHECK(contains(refused(images(0, 2, 2), kY), "all of these must be positive"));
  std::string damaged = gzip(kX);
  damaged[damaged.size() - 6] ^= 1;  // in the checksum
  CHECK(contains(refused(damaged, kY), "damaged gzip stream"));
}

TEST_CASE("idx: promises beyond the file allocate nothing") {
  const std::uint32_t huge = 0xFFFFFFFF;
  const std::string header = big_endian(0x803) + big_endian(huge) + big_endian(huge);
  CHECK(contains(refused(header + big_endian(huge), kY), "more than memory can address"));
  CHECK(contains(refused(header + big_endian(1), kY), "more than memory can address"));
  const std::string terabyte =
      big_endian(0x803) + big_endian(1 << 20) + big_endian(1 << 10) + big_endian(1 << 10);
  CHECK(contains(refused(terabyte, kY), "the file is truncated"));
  CHECK(contains(refused(gzip(terabyte), kY), "cannot plausibly hold"));
  // What shrank too far to be believed is read once it is decompressed, as the message says.
  const std::string black = big_endian(0x803) + big_endian(2) + big_endian(1 << 12) +
                            big_endian(1 << 13) + std::string(std::size_t{64} << 20, '\0');
  CHECK(contains(refused(gzip(black), labels({0, 1})), "decompress the file to use it anyway"));
  CHECK(parse(black, labels({0, 1})).features == std::int64_t{1} << 25);
}

}  // namespace
}  // namespace tritgrad::test::test_idx
