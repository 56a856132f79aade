#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/cifar.h"
#include "engine/data/open_dataset.h"
#include "engine/memory/ledger.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_cifar {
namespace {

constexpr std::size_t kRecord = 3073;
const std::vector<std::string> kFiles = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                         "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};

// A byte that tells image, row, column and channel apart from their neighbours.
std::uint8_t pixel(int image, int y, int x, int channel) {
  return static_cast<std::uint8_t>(image * 101 + y * 37 + x * 5 + channel * 83);
}

std::string record(int image, int label) {
  std::string bytes(1, static_cast<char>(label));
  for (int channel = 0; channel < 3; ++channel) {
    for (int y = 0; y < 32; ++y) {
      for (int x = 0; x < 32; ++x) bytes += static_cast<char>(pixel(image, y, x, channel));
    }
  }
  return bytes;
}

// Differences between a row and the image it shall hold.
int wrong_pixels(const Dataset& data, std::int64_t row, int image) {
  const std::uint8_t* bytes = data.values.as<std::uint8_t>() + row * data.features;
  int wrong = 0;
  for (int y = 0; y < 32; ++y) {
    for (int x = 0; x < 32; ++x) {
      for (int channel = 0; channel < 3; ++channel) {
        if (*bytes++ != pixel(image, y, x, channel)) ++wrong;
      }
    }
  }
  return wrong;
}

std::string refused(const std::string& bytes) {
  return refusal([&] { parse_cifar(bytes, "c.bin"); });
}

// Files of 1, 1, 2, 1, 1 and 3 records; image and label count up.
void write_set(const TempDir& dir, const std::string& folder) {
  int image = 0;
  for (std::size_t i = 0; i < kFiles.size(); ++i) {
    std::string bytes;
    for (const int last = image + (i == 2 ? 2 : i == 5 ? 3 : 1); image < last; ++image) {
      bytes += record(image, image);
    }
    dir.write(folder + "/" + kFiles[i], bytes);
  }
}

TEST_CASE("cifar: planes of red, green and blue become channels beside each other") {
  const Dataset data = parse_cifar(record(0, 7) + record(1, 0) + record(2, 9), "c.bin");
  CHECK(data.rows == 3);
  CHECK(data.features == 3072);
  CHECK(data.image == ImageShape{32, 32, 3});
  CHECK(data.element == Element::kByte);
  CHECK(data.labels == std::vector<std::int32_t>{7, 0, 9});
  CHECK(data.class_names == std::vector<std::string>{"airplane", "automobile", "bird", "cat",
                                                     "deer", "dog", "frog", "horse", "ship",
                                                     "truck"});
  CHECK(data.published_test_rows == 0);
  for (int image = 0; image < 3; ++image) CHECK(wrong_pixels(data, image, image) == 0);
}

TEST_CASE("cifar: pixels stay one byte each, and the ledger knows") {
  const std::int64_t before = ledger::live(Category::kData);
  const Dataset data = parse_cifar(record(0, 0), "c.bin");
  CHECK(ledger::live(Category::kData) - before == 3072 + sizeof(std::int32_t));  // and a label
}

TEST_CASE("cifar: a folder is read in order, with the published test set at the end") {
  const TempDir dir;
  write_set(dir, "mine");
  dir.write("mine/batches.meta.txt", "not read\n");
  const Dataset data = open_dataset((dir / "mine").string());
  CHECK(data.name == "mine");
  CHECK(data.rows == 9);
  CHECK(data.published_test_rows == 3);
  CHECK(data.labels == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8});
  for (int image = 0; image < 9; ++image) CHECK(wrong_pixels(data, image, image) == 0);
}

TEST_CASE("cifar: the fetched set is found by name") {
  const TempDir dir;
  DataOptions options;
  options.cache_folder = dir.path().string();
  CHECK(contains(refusal([&] { open_dataset("cifar10", options); }), "data fetch cifar10"));
  write_set(dir, "cifar10");
  const Dataset data = open_dataset("cifar10", options);
  CHECK(data.name == "cifar10");
  CHECK(data.rows == 9);
}

TEST_CASE("cifar: a folder that lacks one of the six files is refused by its name") {
  for (const std::string& name : kFiles) {
    const TempDir dir;
    write_set(dir, "mine");
    std::filesystem::remove(dir / "mine" / name);
    CHECK(contains(refusal([&] { open_dataset((dir / "mine").string()); }),
                   "no file " + name + " found; CIFAR-10 is data_batch_1.bin to"));
  }
}

TEST_CASE("cifar: a wrong file of a folder is refused with its path") {
  const TempDir dir;
  write_set(dir, "mine");
  const std::string good = read_text(dir / "mine/test_batch.bin");
  const auto said = [&] { return refusal([&] { open_dataset((dir / "mine").string()); }); };
  const std::string path = dir.write("mine/test_batch.bin", good + "z");
  CHECK(contains(said(), path + ": 9220 bytes found, a multiple of 3073"));
  dir.write("mine/test_batch.bin", record(0, 1) + record(0, 255));
  CHECK(contains(said(), path + ": record 1 has label 255"));
  dir.write("mine/test_batch.bin", "");
  CHECK(contains(said(), path + ": the file is empty"));
  constexpr std::uintmax_t kMillion = 1'000'000;
  std::filesystem::resize_file(path, (kMillion + 1) * 3073);  // a hole, on most file systems
  CHECK(contains(said(), path + ": 3073003073 bytes found, at most 3073000000"));
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  CHECK(contains(said(), path + ": is no regular file"));
}

TEST_CASE("cifar: every truncation of a file is refused") {
  const std::string bytes = record(0, 1) + record(1, 2);
  CHECK(contains(refused(""), "c.bin: the file is empty; CIFAR-10 records of 3073 bytes expected"));
  for (std::size_t n = 1; n < bytes.size(); ++n) {
    const std::string message = refused(bytes.substr(0, n));
    if (n == kRecord) {
      CHECK(message.empty());  // nothing tells that a second record is missing
    } else {
      CHECK(contains(message, "c.bin: " + std::to_string(n) + " bytes found, a multiple of 3073"));
    }
  }
}

TEST_CASE("cifar: every label above 9 is refused with record and label") {
  for (int label = 0; label < 256; ++label) {
    const std::string message = refused(record(0, 9) + record(1, label));
    if (label < 10) {
      CHECK(message.empty());
    } else {
      CHECK(contains(message, "c.bin: record 1 has label " + std::to_string(label) +
                                  ", CIFAR-10's go from 0 to 9"));
    }
  }
}

}  // namespace
}  // namespace tritgrad::test::test_cifar
