#include "engine/data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <vector>

#include "engine/check.h"
#include "engine/files/read_file.h"

namespace tritgrad {
namespace {

// ---- Gzip members, inflated into memory of known size: no small file can fill the machine ----

// zlib counts in unsigned int; longer spans are handed over in pieces.
constexpr std::size_t kMaxPiece = std::numeric_limits<unsigned>::max();

class Inflater {
 public:
  Inflater(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {
    constexpr int kGzipOnly = 16;
    check(inflateInit2(&stream_, MAX_WBITS + kGzipOnly) == Z_OK, where_,
          ": zlib cannot be started; is there enough memory?");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Fills `out` as far as the contents reach; returns the bytes written.
  std::size_t read(std::span<std::uint8_t> out) {
    std::size_t written = 0;
    while (written < out.size() && !ended_) {
      const std::size_t room = std::min(out.size() - written, kMaxPiece);
      const std::size_t offered = std::min(bytes_.size() - consumed_, kMaxPiece);
      stream_.next_out = out.data() + written;
      stream_.avail_out = static_cast<unsigned>(room);
      // zlib's C interface takes no const, but never writes to its input.
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes_.data() + consumed_));
      stream_.avail_in = static_cast<unsigned>(offered);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      written += room - stream_.avail_out;
      consumed_ += offered - stream_.avail_in;
      ended_ = status == Z_STREAM_END;
      if (status == Z_BUF_ERROR || (status == Z_OK && offered == 0)) {
        fail(where_, ": the gzip stream ends too early; the file is truncated, fetch it again");
      }
      if (status != Z_OK && !ended_) {
        fail(where_, ": damaged gzip stream (", stream_.msg ? stream_.msg : "zlib error",
             "); fetch the file again");
      }
    }
    return written;
  }

  std::size_t unread_input() const { return bytes_.size() - consumed_; }

 private:
  std::string_view bytes_;
  const std::string& where_;
  std::size_t consumed_ = 0;
  bool ended_ = false;
  z_stream stream_{};
};

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

// Inflates the beginning of a member until `out` is full; returns how many bytes there were.
std::size_t inflate_prefix(std::string_view bytes, std::span<std::uint8_t> out,
                           const std::string& where) {
  return Inflater(bytes, where).read(out);
}

// Inflates a whole member: its first head.size() bytes, then body.size() bytes. Throws when the
// contents are shorter or longer, when the checksum is wrong, or when bytes follow.
void inflate_exactly(std::string_view bytes, std::span<std::uint8_t> head,
                     std::span<std::uint8_t> body, const std::string& where) {
  Inflater inflater(bytes, where);
  const std::size_t found = inflater.read(head) + inflater.read(body);
  check(found == head.size() + body.size(), where, ": ", found,
        " bytes found after decompression, ", head.size() + body.size(),
        " promised by the header; fetch the file again");
  // Asking for one byte more makes zlib verify the checksum at the end of the member.
  std::uint8_t extra[1];
  check(inflater.read(extra) == 0, where, ": more than the ", found,
        " bytes promised by the header after decompression; fetch the file again");
  check(inflater.unread_input() == 0, where, ": ", inflater.unread_input(),
        " trailing bytes after the gzip stream; fetch the file again");
}

// ---- Headers and payloads ----

constexpr std::size_t kMaxHeader = 16;

struct IdxHeader {
  std::int64_t count = 0;
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::size_t header_bytes = 0;
  std::size_t payload_bytes = 0;
};

std::int64_t big_endian_32(const std::uint8_t* bytes) {
  return (std::int64_t{bytes[0]} << 24) | (bytes[1] << 16) | (bytes[2] << 8) | bytes[3];
}

// A hostile file of a few bytes may promise terabytes. Real images shrink by less than ten; the
// free allowance leaves room for sorted labels, which shrink a thousandfold.
void check_gzip_promise(std::size_t promised, std::size_t compressed, const std::string& where) {
  constexpr std::size_t kFree = 16 << 20;
  constexpr std::size_t kMaxRatio = 32;
  check(promised <= kFree || (promised - kFree) / kMaxRatio <= compressed, where,
        ": the header promises ", promised, " bytes, which ", compressed,
        " compressed bytes cannot plausibly hold; decompress the file to use it anyway");
}

IdxHeader read_header(std::string_view bytes, int axes, const std::string& where) {
  std::array<std::uint8_t, kMaxHeader> raw{};
  IdxHeader header;
  header.header_bytes = 4 + 4 * static_cast<std::size_t>(axes);
  const std::span<std::uint8_t> wanted(raw.data(), header.header_bytes);
  std::size_t found = std::min(bytes.size(), header.header_bytes);
  if (is_gzip(bytes)) {
    found = inflate_prefix(bytes, wanted, where);
  } else {
    std::copy_n(bytes.begin(), found, raw.begin());
  }
  check(found == header.header_bytes, where, ": ", found, " bytes found, an IDX header has ",
        header.header_bytes, "; the file is truncated, fetch it again");
  const std::int64_t magic = big_endian_32(raw.data());
  check(magic == 0x800 + axes, where, ": the file begins with ", magic, ", expected ", 0x800 + axes,
        " (IDX ", axes == 3 ? "images" : "labels", " of unsigned bytes); give the right file");
  header.count = big_endian_32(&raw[4]);
  if (axes == 3) {
    header.height = big_endian_32(&raw[8]);
    header.width = big_endian_32(&raw[12]);
  }
  check(header.count > 0 && header.height > 0 && header.width > 0, where, ": the header declares ",
        header.count, " items of ", header.height, " x ", header.width,
        ", all of these must be positive");
  // Two factors below 2^32 fit 64 bits; the third may not.
  const auto pixels =
      static_cast<std::uint64_t>(header.height) * static_cast<std::uint64_t>(header.width);
  check(pixels <= (std::uint64_t{1} << 62) / static_cast<std::uint64_t>(header.count), where,
        ": the header declares ", header.count, " images of ", header.height, " x ", header.width,
        ", more than memory can address");
  header.payload_bytes = static_cast<std::uint64_t>(header.count) * pixels;
  if (is_gzip(bytes)) {
    check_gzip_promise(header.payload_bytes, bytes.size(), where);
  } else {
    const std::size_t expected = header.header_bytes + header.payload_bytes;
    check(bytes.size() >= expected, where, ": ", bytes.size(), " bytes found, ", expected,
          " promised by the header; the file is truncated, fetch it again");
    check(bytes.size() == expected, where, ": ", bytes.size() - expected,
          " trailing bytes after the ", expected, " promised by the header; fetch the file again");
  }
  return header;
}

void read_payload(std::string_view bytes, const IdxHeader& header, std::uint8_t* out,
                  const std::string& where) {
  if (is_gzip(bytes)) {
    std::array<std::uint8_t, kMaxHeader> head;
    inflate_exactly(bytes, {head.data(), header.header_bytes}, {out, header.payload_bytes}, where);
  } else {
    std::copy_n(bytes.data() + header.header_bytes, header.payload_bytes, out);
  }
}

// Appends the labels of one part; those after the first part must be known classes.
void append_labels(Dataset& dataset, const IdxPair& part, const IdxHeader& header) {
  const bool training = dataset.labels.empty();
  std::vector<std::uint8_t> bytes(header.payload_bytes);
  read_payload(part.labels, header, bytes.data(), part.labels_where);
  if (training) {
    std::array<bool, 256> occurs{};
    for (std::uint8_t label : bytes) occurs[label] = true;
    const int classes = *std::max_element(bytes.begin(), bytes.end()) + 1;
    for (int label = 0; label < classes; ++label) {
      check(occurs[static_cast<std::size_t>(label)], part.labels_where, ": class ", label,
            " never occurs although label ", classes - 1,
            " does; number the classes from 0 without gaps");
      dataset.class_names.push_back(std::to_string(label));
    }
    check(classes > 1, part.labels_where, ": all ", bytes.size(),
          " labels are 0, at least two classes are needed");
  }
  for (std::size_t row = 0; row < bytes.size(); ++row) {
    if (bytes[row] >= dataset.classes()) {
      fail(part.labels_where, ": row ", row, " has label ", int{bytes[row]},
           ", the training labels go from 0 to ", dataset.classes() - 1);
    }
    dataset.labels.push_back(bytes[row]);
  }
}

std::string find_file(const std::string& folder, const std::string& stem, const std::string& type) {
  for (const char* joint : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      const auto path = std::filesystem::path(folder) / (stem + joint + type + ending);
      std::error_code error;
      if (std::filesystem::is_regular_file(path, error)) return path.string();
    }
  }
  return "";
}

std::string require_file(const std::string& folder, const std::string& stem,
                         const std::string& type) {
  const std::string path = find_file(folder, stem, type);
  check(!path.empty(), "folder ", folder, ": no file ", stem, "-", type,
        " (or .gz) found; the folder must hold the four IDX files of training and test set");
  return path;
}

}  // namespace

Dataset parse_idx(std::span<const IdxPair> parts, const std::string& name) {
  Dataset dataset;
  dataset.name = name;
  std::vector<IdxHeader> image_headers, label_headers;
  std::int64_t rows = 0;
  for (const IdxPair& part : parts) {
    const IdxHeader images = read_header(part.images, 3, part.images_where);
    const IdxHeader labels = read_header(part.labels, 1, part.labels_where);
    check(images.count == labels.count, part.images_where, " holds ", images.count, " images but ",
          part.labels_where, " holds ", labels.count, " labels; give files that belong together");
    image_headers.push_back(images);
    label_headers.push_back(labels);
    const IdxHeader& first = image_headers.front();
    check(images.height == first.height && images.width == first.width, part.images_where,
          ": images of ", images.height, " x ", images.width, " found, ", first.height, " x ",
          first.width, " expected as in the training set");
    rows += images.count;
  }
  check(!parts.empty(), "data set ", name, ": no IDX files given");
  dataset.image = {image_headers[0].height, image_headers[0].width, 1};
  dataset.allocate(rows, dataset.image.size(), Element::kByte);
  std::uint8_t* pixels = dataset.values.as<std::uint8_t>();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    read_payload(parts[i].images, image_headers[i], pixels, parts[i].images_where);
    pixels += image_headers[i].payload_bytes;
    append_labels(dataset, parts[i], label_headers[i]);
  }
  dataset.published_test_rows = rows - image_headers[0].count;
  return dataset;
}

Dataset read_idx_folder(const std::string& folder, const std::string& name) {
  std::array<std::string, 4> bytes;
  std::array<IdxPair, 2> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string stem = i == 0 ? "train" : "t10k";
    IdxPair& part = parts[i];
    part.images_where = require_file(folder, stem + "-images", "idx3-ubyte");
    part.labels_where = require_file(folder, stem + "-labels", "idx1-ubyte");
    part.images = bytes[2 * i] = read_file(part.images_where);
    part.labels = bytes[2 * i + 1] = read_file(part.labels_where);
  }
  return parse_idx(parts, name);
}

bool has_idx_files(const std::string& folder) {
  return !find_file(folder, "train-images", "idx3-ubyte").empty();
}

}  // namespace tritgrad
