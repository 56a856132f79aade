#include "engine/idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "engine/check.h"
#include "engine/read_file.h"

namespace tritgrad {
namespace {

// Decompressed size that no file of this kind has; a small file that claims more is an attack.
constexpr std::size_t kMaxBytes = std::size_t{1} << 32;

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

IdxArray read_array(const std::string& path, std::size_t rank) {
  return parse_idx(gunzip(read_file(path), kMaxBytes, path), rank, path);
}

void append(Dataset& dataset, const IdxPair& files, std::int64_t first_row, const IdxArray& images) {
  const IdxArray labels = read_array(files.labels, 1);
  const std::int64_t rows = images.extents[0];
  check(labels.extents.size() == 1 && labels.extents[0] == rows, files.labels, ": ", labels.extents[0],
        " labels found, expected one for each of the ", rows, " images of ", files.images);
  std::copy(images.bytes.begin(), images.bytes.end(),
            dataset.values.as<char>() + first_row * dataset.features);
  for (char label : labels.bytes) {
    dataset.labels.push_back(static_cast<unsigned char>(label));
  }
}

std::string find_file(const std::string& folder, const std::string& name) {
  const std::string plain = folder + "/" + name;
  if (std::filesystem::exists(plain)) return plain;
  if (std::filesystem::exists(plain + ".gz")) return plain + ".gz";
  fail("folder ", folder, " has neither ", name, " nor ", name, ".gz; expected the four IDX files "
       "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and "
       "t10k-labels-idx1-ubyte");
}

}  // namespace

std::string gunzip(std::string_view data, std::size_t limit, const std::string& where) {
  if (!data.starts_with("\x1f\x8b")) return std::string(data);
  z_stream stream{};
  check(inflateInit2(&stream, 15 + 16) == Z_OK, where, ": zlib cannot be started");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  std::string result;
  std::array<char, 65536> block;
  int status = Z_OK;
  while (status == Z_OK && result.size() <= limit) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    status = inflate(&stream, Z_NO_FLUSH);
    result.append(block.data(), block.size() - stream.avail_out);
  }
  const bool leftover = stream.avail_in > 0;
  inflateEnd(&stream);
  check(result.size() <= limit, where, ": more than ", limit, " bytes when decompressed");
  check(status == Z_STREAM_END && !leftover, where,
        ": the gzip data are damaged or truncated; fetch the file again");
  return result;
}

IdxArray parse_idx(std::string_view file, std::size_t rank, const std::string& where) {
  check(file.size() >= 4, where, ": ", file.size(), " bytes are too few for an IDX file");
  check(file[0] == 0 && file[1] == 0, where, ": the file does not begin like an IDX file (two zero bytes)");
  check(file[2] == 8, where, ": element type 0x", concat(std::hex, static_cast<int>(file[2])),
        " found, expected 0x8 (unsigned bytes)");
  const auto axes = static_cast<std::size_t>(static_cast<unsigned char>(file[3]));
  check(axes >= rank && axes <= 4, where, ": ", axes, " axes found, expected ", rank);
  check(file.size() >= 4 + 4 * axes, where, ": the file is truncated in its header");
  IdxArray array;
  std::uint64_t bytes = 1;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const std::uint32_t extent = big_endian(file.substr(4 + 4 * axis, 4));
    check(extent > 0, where, ": axis ", axis, " has no elements");
    check(!__builtin_mul_overflow(bytes, std::uint64_t{extent}, &bytes), where,
          ": the product of its extents overflows");
    array.extents.push_back(extent);
  }
  const std::string_view body = file.substr(4 + 4 * axes);
  check(body.size() == bytes, where, ": ", body.size(), " bytes of data found, expected ", bytes,
        "; the file is truncated or has bytes left over");
  array.bytes = std::string(body);
  return array;
}

Dataset read_idx(const std::string& name, const IdxPair& train, const IdxPair& test) {
  const IdxArray train_images = read_array(train.images, 2);
  const IdxArray test_images = read_array(test.images, 2);
  const auto features = [](const IdxArray& images) {
    return static_cast<std::int64_t>(images.bytes.size()) / images.extents[0];
  };
  check(features(train_images) == features(test_images), test.images, ": ", features(test_images),
        " pixels a row found, expected ", features(train_images), " as in ", train.images);
  Dataset dataset;
  dataset.name = name;
  dataset.image = true;
  dataset.published_test_rows = test_images.extents[0];
  dataset.allocate(train_images.extents[0] + test_images.extents[0], features(train_images),
                   Element::kByte);
  append(dataset, train, 0, train_images);
  append(dataset, test, train_images.extents[0], test_images);

  const auto train_end = dataset.labels.begin() + train_images.extents[0];
  const std::int32_t last = *std::max_element(dataset.labels.begin(), train_end);
  check(last > 0, train.labels, ": all labels are 0, at least two classes are needed");
  for (auto label = train_end; label != dataset.labels.end(); ++label) {
    check(*label <= last, test.labels, ": label ", *label, " of row ", label - train_end,
          " is outside 0..", last, ", the labels of ", train.labels);
  }
  for (std::int32_t c = 0; c <= last; ++c) dataset.class_names.push_back(std::to_string(c));
  return dataset;
}

Dataset read_idx_folder(const std::string& name, const std::string& folder) {
  return read_idx(name,
                  {find_file(folder, "train-images-idx3-ubyte"),
                   find_file(folder, "train-labels-idx1-ubyte")},
                  {find_file(folder, "t10k-images-idx3-ubyte"),
                   find_file(folder, "t10k-labels-idx1-ubyte")});
}

}  // namespace tritgrad
