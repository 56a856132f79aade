// A folder of four IDX files, written as a test needs it.
#pragma once

#include <string>

#include "tests/support/support_files.h"

namespace tritgrad::test {

// `rows` grey images of 4 x 4 bytes in two classes, told apart by their upper half.
inline void write_idx_part(const TempDir& folder, const std::string& part, int rows) {
  const std::string count = {0, 0, 0, static_cast<char>(rows)};
  const std::string side = {0, 0, 0, 4};
  std::string images = std::string{0, 0, 8, 3} + count + side + side;
  std::string labels = std::string{0, 0, 8, 1} + count;
  for (int row = 0; row < rows; ++row) {
    const int label = row % 2;
    labels += static_cast<char>(label);
    for (int pixel = 0; pixel < 16; ++pixel) {
      const int shade = (row * 37 + pixel * 11) % 100;
      images += static_cast<char>(label == 1 && pixel < 8 ? shade + 100 : shade);
    }
  }
  folder.write(part + "-images-idx3-ubyte", images);
  folder.write(part + "-labels-idx1-ubyte", labels);
}

// 60 rows to train on and 20 published ones to test on, in folder/idx, whose path is returned.
inline std::string write_idx_folder(const TempDir& folder) {
  write_idx_part(folder, "idx/train", 60);
  write_idx_part(folder, "idx/t10k", 20);
  return folder / "idx";
}

}  // namespace tritgrad::test
