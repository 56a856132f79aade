#include "engine/data/cifar.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <vector>

#include "engine/check.h"
#include "engine/files/piecewise_file.h"

namespace tritgrad {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPixels = kCifarImage.pixels();
constexpr std::int64_t kRecordBytes = 1 + kCifarImage.size();
// The largest file that is read; the original ones have 10,000 records.
constexpr std::uint64_t kMostBytes = std::uint64_t{1'000'000} * kRecordBytes;
const char* const kClasses[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                "dog",      "frog",       "horse", "ship", "truck"};
constexpr int kClassCount = std::size(kClasses);
// The test set last.
const char* const kFiles[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                              "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};

std::int64_t records_in(std::uint64_t bytes, const std::string& where) {
  check(bytes > 0, where, ": the file is empty; CIFAR-10 records of ", kRecordBytes,
        " bytes expected, fetch it again");
  check(bytes % kRecordBytes == 0, where, ": ", bytes, " bytes found, a multiple of ", kRecordBytes,
        " (one CIFAR-10 record) expected; the file is damaged or of another kind, fetch it again");
  return static_cast<std::int64_t>(bytes / kRecordBytes);
}

Dataset empty_rows(std::int64_t rows, const std::string& name) {
  Dataset dataset;
  dataset.name = name;
  dataset.class_names.assign(std::begin(kClasses), std::end(kClasses));
  dataset.allocate(rows, kCifarImage.size(), Element::kByte);
  dataset.image = kCifarImage;
  dataset.labels.reserve(static_cast<std::size_t>(rows));
  return dataset;
}

// Decodes whole records into the rows that follow those there are labels for. `first` is the number
// of the first one in its file.
void append_records(Dataset& dataset, std::string_view bytes, std::int64_t first,
                    const std::string& where) {
  const auto* record = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const auto* end = record + bytes.size();
  auto row = static_cast<std::int64_t>(dataset.labels.size());
  std::uint8_t* out = dataset.values.as<std::uint8_t>() + row * dataset.features;
  for (std::int64_t index = first; record != end; ++index, record += kRecordBytes) {
    if (record[0] >= kClassCount) {
      fail(where, ": record ", index, " has label ", int{record[0]},
           ", CIFAR-10's go from 0 to 9; the file is damaged or of another kind, fetch it again");
    }
    dataset.labels.push_back(record[0]);
    for (std::int64_t pixel = 0; pixel < kPixels; ++pixel) {
      for (std::int64_t channel = 0; channel < kCifarImage.channels; ++channel) {
        *out++ = record[1 + channel * kPixels + pixel];
      }
    }
  }
}

// Reads a file of so many records, a few of which are in memory at a time.
void append_file(Dataset& dataset, const std::string& path, std::int64_t records) {
  constexpr std::int64_t kAtOnce = 256;
  const PiecewiseFile file(path);
  check(records_in(file.size(), path) == records, path,
        ": changed its size while it was read; try again when nothing writes to it");
  std::vector<std::uint8_t> bytes;
  for (std::int64_t first = 0; first < records; first += kAtOnce) {
    bytes.resize(static_cast<std::size_t>(std::min(kAtOnce, records - first) * kRecordBytes));
    file.read(static_cast<std::uint64_t>(first * kRecordBytes), bytes);
    append_records(dataset, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, first,
                   path);
  }
}

// Throws when the folder lacks one.
std::uint64_t size_of(const fs::path& folder, const char* name) {
  std::error_code error;
  const fs::path path = folder / name;
  check(fs::exists(path, error), "folder ", folder.string(), ": no file ", name,
        " found; CIFAR-10 is data_batch_1.bin to data_batch_5.bin and test_batch.bin");
  check(fs::is_regular_file(path, error), path.string(), ": is no regular file");
  const std::uint64_t bytes = fs::file_size(path, error);
  check(!error && bytes <= kMostBytes, path.string(), ": ", bytes, " bytes found, at most ",
        kMostBytes, " expected; the file is damaged or of another kind, fetch it again");
  return bytes;
}

}  // namespace

Dataset parse_cifar(std::string_view bytes, const std::string& where) {
  Dataset dataset = empty_rows(records_in(bytes.size(), where), where);
  append_records(dataset, bytes, 0, where);
  return dataset;
}

Dataset read_cifar_folder(const std::string& folder, const std::string& name) {
  std::vector<std::int64_t> records;
  for (const char* file : kFiles) {
    records.push_back(records_in(size_of(folder, file), (fs::path(folder) / file).string()));
  }
  Dataset dataset = empty_rows(std::accumulate(records.begin(), records.end(), INT64_C(0)), name);
  for (std::size_t i = 0; i < records.size(); ++i) {
    append_file(dataset, (fs::path(folder) / kFiles[i]).string(), records[i]);
  }
  dataset.published_test_rows = records.back();
  return dataset;
}

bool has_cifar_files(const std::string& folder) {
  return std::any_of(std::begin(kFiles), std::end(kFiles), [&](const char* file) {
    std::error_code error;
    return fs::exists(fs::path(folder) / file, error);
  });
}

}  // namespace tritgrad
