#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "engine/files/checkpoint.h"
#include "engine/formats/storage.h"
#include "engine/memory/column_blocks.h"
#include "ops/products/trit_panels.h"
#include "tests/support/support.h"
#include "tests/support/support_files.h"
#include "tests/support/support_formats.h"

namespace tritgrad::test::test_column_blocks {
namespace {

// Numbers 0, 1, 2, ... of a matrix row by row, modulo 251: no rows are equal.
std::vector<std::byte> counted(std::int64_t bytes) {
  std::vector<std::byte> all;
  for (std::int64_t i = 0; i < bytes; ++i) all.push_back(static_cast<std::byte>(i % 251));
  return all;
}

std::vector<std::byte> in_file_order(const ColumnBlocks& order, std::span<const std::byte> plane) {
  std::vector<std::byte> file;
  order.for_each_piece(plane, [&](std::span<const std::byte> piece) {
    file.insert(file.end(), piece.begin(), piece.end());
  });
  return file;
}

}  // namespace

TEST_CASE("column blocks: every byte is where offset() says, and goes back to its place") {
  // The third has rows of more than a piece (64 KiB), the fourth more rows than fit one.
  struct Case {
    std::int64_t rows, row_bytes, block_bytes;
  };
  for (const Case& c : {Case{3, 7, 3},
                        {5, 640, 320},
                        {2, 70'000, 320},
                        {300, 330, 320},
                        {4, 320, 320},
                        {1, 1000, 320},
                        {0, 10, 3},
                        {7, 0, 3}}) {
    CAPTURE(c.rows);
    CAPTURE(c.row_bytes);
    const ColumnBlocks order(c.rows, c.row_bytes, c.block_bytes);
    const std::vector<std::byte> file = counted(c.rows * c.row_bytes);
    std::vector<std::byte> plane(file.size());
    order.copy_from_file(plane, file);
    std::int64_t wrong = 0;
    for (std::int64_t r = 0; r < c.rows; ++r) {
      for (std::int64_t i = 0; i < c.row_bytes; ++i) {
        const std::int64_t begin = i / c.block_bytes * c.block_bytes;
        const std::int64_t at = order.offset(r, begin) + i - begin;
        wrong += plane[static_cast<std::size_t>(at)] !=
                 file[static_cast<std::size_t>(r * c.row_bytes + i)];
      }
    }
    CHECK(wrong == 0);
    CHECK(in_file_order(order, plane) == file);
  }
}

TEST_CASE("column blocks: without any, memory is as the file") {
  const std::vector<std::byte> file = counted(100);
  std::vector<std::byte> plane(file.size());
  ColumnBlocks().copy_from_file(plane, file);
  CHECK(plane == file);
  CHECK(in_file_order({}, plane) == file);
}

TEST_CASE("column blocks: rows of a block lie side by side, blocks after each other") {
  const ColumnBlocks order(10, 700, 320);
  CHECK(order.width(0) == 320);
  CHECK(order.width(640) == 60);
  CHECK(order.offset(1, 0) == 320);
  CHECK(order.offset(0, 320) == 3200);
  CHECK(order.offset(3, 640) == 6400 + 3 * 60);
}

TEST_CASE("column blocks: a file of latents lies row by row") {
  constexpr std::int64_t kRows = 5, kCols = 700;
  ParameterStore store;
  Parameter& w = store.add({"w",
                            Role::kWeight,
                            {kRows, kCols},
                            spec_of(FormatKind::kLatent8),
                            {Initial::Kind::kUniform, 1.0f}},
                           1);
  const TempDir folder;
  const std::string path = (folder / "model.safetensors").string();
  save_checkpoint(path, {}, parameter_planes(store));
  const SafetensorsFile file = open_checkpoint(path);
  const std::span<const std::byte> codes = file.tensor("w/code").bytes;
  REQUIRE(codes.size() == kRows * kCols);
  std::vector<float> masters(kCols);
  for (std::int64_t row = 0; row < kRows; ++row) {
    for_each_block(row, row + 1, kCols, [&](const Block& block) {
      w.storage().decode_master(block, masters.data() + block.col);
    });
    for (std::int64_t i = 0; i < kCols; ++i) {
      const auto code = static_cast<std::int8_t>(codes[static_cast<std::size_t>(row * kCols + i)]);
      CHECK(static_cast<float>(code) * (1.0f / 85.0f) == masters[static_cast<std::size_t>(i)]);
    }
  }

  // And back, over other codes.
  const std::string before = weights_sha256(store);
  encode_all(w.storage(), std::vector<float>(kRows * kCols, 1.0f));
  CHECK(weights_sha256(store) != before);
  load_checkpoint(file, parameter_planes(store));
  CHECK(weights_sha256(store) == before);
}

TEST_CASE("column blocks: a tile is decoded as its blocks are, in every format that holds trits") {
  for (const FormatKind kind : formats_for(kWeight)) {
    for (const std::int64_t cols : {320, 640, 700, 5}) {
      CAPTURE(std::string(format_name(kind)));
      CAPTURE(cols);
      constexpr std::int64_t kRows = 7;
      Storage storage(spec_of(kind), {kRows, cols}, Category::kWeights);
      if (!storage.spec().traits().holds_trits) continue;
      encode_all(storage, numbers(kRows * cols, 3));
      for (std::int64_t col = 0; col < cols; col += kBlock) {
        const std::int64_t n = std::min(kBlock, cols - col);
        std::array<std::int8_t, 4 * kBlock> tile;
        decode_trits(storage, MatrixPiece{2, 6, col}, tile.data());
        for (std::int64_t row = 2; row < 6; ++row) {
          std::array<std::int8_t, kBlock> block;
          decode_trits(storage, Block{row, col, n}, block.data());
          CHECK(std::equal(block.begin(), block.begin() + n, tile.begin() + (row - 2) * kBlock));
        }
      }
    }
  }
}

}  // namespace tritgrad::test::test_column_blocks
