// IDX files, the format of MNIST: big-endian magic number, extents, bytes.
#pragma once

#include <string>
#include <string_view>

#include "engine/dataset.h"

namespace tritgrad {

// One pair of files; each may be gzip-compressed (told by its first bytes, not by its name).
struct IdxPair {
  std::string images;  // unsigned bytes, [n x ...]: everything behind the first axis is one row
  std::string labels;  // unsigned bytes, [n]
};

// Training and test images as one set, the test rows last (Dataset::published_test_rows).
// Throws Error with the file, what was found and what was expected.
Dataset read_idx(const std::string& name, const IdxPair& train, const IdxPair& test);
// The four files of a folder under their usual names, with or without ".gz".
Dataset read_idx_folder(const std::string& name, const std::string& folder);

// Contents of an IDX file in memory.
struct IdxArray {
  std::vector<std::int64_t> extents;
  std::string bytes;
};
// `rank`: axes expected, at least. `where` begins the messages.
IdxArray parse_idx(std::string_view file, std::size_t rank, const std::string& where);

// `data` as it is, or decompressed if it begins like a gzip file. Refuses to grow beyond `limit` bytes.
std::string gunzip(std::string_view data, std::size_t limit, const std::string& where);

}  // namespace tritgrad
