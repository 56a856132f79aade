// The memory of a process that trains: what its result says of training and of data, and the
// program.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program.h"
#include "tests/support/support_files.h"

#ifndef TRITGRAD_SANITIZED  // sanitizers keep shadows of all memory

namespace tritgrad::test::test_resident_memory {
namespace {

constexpr int kSide = 28, kTestRows = 100;

std::string big_endian(int value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

void write_part(const TempDir& folder, const std::string& part, int rows) {
  const std::string size = big_endian(rows) + big_endian(kSide) + big_endian(kSide);
  std::string pixels(static_cast<std::size_t>(rows) * kSide * kSide, '\0'), labels;
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<char>(i * i % 251);
  for (int row = 0; row < rows; ++row) labels += static_cast<char>(row % 10);
  folder.write(part + "-images-idx3-ubyte", std::string{0, 0, 8, 3} + size + pixels);
  folder.write(part + "-labels-idx1-ubyte", std::string{0, 0, 8, 1} + big_endian(rows) + labels);
}

// CIFAR-10's records: a label, and 32 x 32 pixels of three colours.
void write_records(const TempDir& folder, const std::string& name, int rows) {
  std::string bytes;
  for (int row = 0; row < rows; ++row) {
    bytes += static_cast<char>(row % 10) + std::string(3072, static_cast<char>(row % 251));
  }
  folder.write(name, bytes);
}

struct Measured {
  double resident;  // the most bytes of the process
  double ledger;    // peak_live_bytes
  double data;      // data_bytes

  double rest() const { return resident - ledger - data; }
};

Measured train_on(const std::string& data, const std::string& model) {
  const TempDir folder;
  const std::string json = folder / "r.json";
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl(TRITGRAD_BINARY, TRITGRAD_BINARY, "train", "--data", data.c_str(), "--model",
            model.c_str(), "--recipe", "latent8", "--epochs", "1", "--batch", "100", "--threads",
            "1", "--stop-after", "3", "--save", (folder / "m").c_str(), "--json", json.c_str(),
            "--quiet", nullptr);
    ::_exit(127);
  }
  int status = 0;
  struct rusage used {};
  REQUIRE(::wait4(child, &status, 0, &used) == child);
  REQUIRE(WEXITSTATUS(status) == 0);
  const auto result = nlohmann::json::parse(read_text(json));
  return {static_cast<double>(used.ru_maxrss) * 1024.0, result["peak_live_bytes"].get<double>(),
          result["data_bytes"].get<double>()};
}

// Says what was measured, for RELIABILITY.md.
void check_resident(const Measured& run, double program) {
  constexpr double kMargin = 1.1;
  const double accounted = program + run.ledger + run.data;
  MESSAGE("resident " << run.resident / 0x1p20 << " MiB: the program " << program / 0x1p20
                      << ", training " << run.ledger / 0x1p20 << ", the data " << run.data / 0x1p20
                      << "; " << run.resident / accounted << " of their sum");
  CHECK(run.resident < kMargin * accounted);
  CHECK(run.resident > accounted / kMargin);
}

TEST_CASE("resident memory: that of a small run, and what the result says of training and data") {
  constexpr int kRows = 60000;
  const TempDir few, many;
  for (const auto& [folder, rows] : {std::pair(&few, 200), std::pair(&many, kRows)}) {
    write_part(*folder, "train", rows);
    write_part(*folder, "t10k", kTestRows);
  }
  const Measured small = train_on(few.path().string(), "mlp:8");
  // Beside a row's bytes: its label, its place in two orders of rows and in the split, 4 bytes
  // each. A batch has 100 rows of floats, and their labels.
  constexpr double kOfRow = kSide * kSide + 4 * 4, kOfBatch = 100.0 * (kSide * kSide + 1) * 4.0;
  for (const char* model : {"mlp:8", "mlp:4096,4096"}) {
    CAPTURE(model);
    const Measured large = train_on(many.path().string(), model);
    check_resident(large, small.rest());
    CHECK(large.data >= kRows * kOfRow + kOfBatch);
    CHECK(large.data <= (kRows + kTestRows) * kOfRow + kOfBatch);
  }
}

TEST_CASE("resident memory: files of CIFAR-10 are in memory once") {
  constexpr int kRows = 3000;
  const TempDir few, many;
  for (const auto& [folder, rows] : {std::pair(&few, 20), std::pair(&many, kRows)}) {
    for (const char* part : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                             "data_batch_5", "test_batch"}) {
      write_records(*folder, std::string(part) + ".bin", rows);
    }
  }
  const Measured small = train_on(few.path().string(), "mlp:8");
  const Measured large = train_on(many.path().string(), "mlp:8");
  check_resident(large, small.rest());
  // The values and labels of all rows, at the least.
  CHECK(large.data >= 6.0 * kRows * (3072 + 4));
}

}  // namespace
}  // namespace tritgrad::test::test_resident_memory

#else

TEST_CASE("resident memory") {
  MESSAGE("skipped: the memory of a process, of which sanitizers keep shadows");
}

#endif
