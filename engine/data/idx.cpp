#include "engine/data/idx.h"

#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <vector>

#include "engine/check.h"
#include "engine/files/gzip.h"
#include "engine/files/piecewise_file.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

// Inflates the beginning of a member until `out` is full; returns how many bytes there were.
std::size_t inflate_prefix(std::string_view bytes, std::span<std::uint8_t> out,
                           const std::string& where) {
  GzipMember member(bytes, where);
  return member.read(out);
}

// Inflates a whole member: its first head.size() bytes, then body.size() bytes. Throws when the
// contents are shorter or longer, when the checksum is wrong, or when bytes follow.
void inflate_exactly(std::string_view bytes, std::span<std::uint8_t> head,
                     std::span<std::uint8_t> body, const std::string& where) {
  GzipMember inflater(bytes, where);
  const std::size_t found = inflater.read(head) + inflater.read(body);
  check(found == head.size() + body.size(), where, ": ", found,
        " bytes found after decompression, ", head.size() + body.size(),
        " promised by the header; fetch the file again");
  // Asking for one byte more makes zlib verify the checksum at the end of the member.
  std::uint8_t extra[1];
  check(inflater.read(extra) == 0, where, ": more than the ", found,
        " bytes promised by the header after decompression; fetch the file again");
  check(inflater.unread_input() == 0, where, ": ",
        counted(static_cast<std::int64_t>(inflater.unread_input()), "trailing byte"),
        " after the gzip stream; fetch the file again");
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

// The bytes of an IDX file: all that are in memory or compressed; else the beginning, and the file
// for the rest.
struct IdxSource {
  std::string_view bytes;
  std::uint64_t size;
  const PiecewiseFile* file = nullptr;
  std::string where;
};

struct IdxSources {
  IdxSource images, labels;
};

std::int64_t big_endian_32(const std::uint8_t* bytes) {
  return (std::int64_t{bytes[0]} << 24) | (bytes[1] << 16) | (bytes[2] << 8) | bytes[3];
}

IdxHeader read_header(const IdxSource& source, int axes) {
  const auto& [bytes, size, file, where] = source;
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
    check(is_plausible_inflation(header.payload_bytes, bytes.size()), where,
          ": the header promises ", header.payload_bytes, " bytes, which ", bytes.size(),
          " compressed bytes cannot plausibly hold; decompress the file to use it anyway");
  } else {
    const std::size_t expected = header.header_bytes + header.payload_bytes;
    check(size >= expected, where, ": ", size, " bytes found, ", expected,
          " promised by the header; the file is truncated, fetch it again");
    check(size == expected, where, ": ",
          counted(static_cast<std::int64_t>(size - expected), "trailing byte"), " after the ",
          expected, " promised by the header; fetch the file again");
  }
  return header;
}

void read_payload(const IdxSource& source, const IdxHeader& header, std::uint8_t* out) {
  if (is_gzip(source.bytes)) {
    std::array<std::uint8_t, kMaxHeader> head;
    inflate_exactly(source.bytes, {head.data(), header.header_bytes}, {out, header.payload_bytes},
                    source.where);
  } else if (source.file != nullptr) {
    source.file->read(header.header_bytes, {out, header.payload_bytes});
  } else {
    std::copy_n(source.bytes.data() + header.header_bytes, header.payload_bytes, out);
  }
}

// Appends the labels of one part. Classes are the values that occur in the first one, the training
// rows; those of later parts must be among them.
void append_labels(Dataset& dataset, const IdxSource& source, const IdxHeader& header) {
  std::vector<std::uint8_t> bytes(header.payload_bytes);
  read_payload(source, header, bytes.data());
  if (dataset.labels.empty()) {
    std::vector<std::uint8_t> classes = bytes;
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    check(classes.size() > 1, source.where, ": all ", bytes.size(), " labels are ", int{classes[0]},
          ", at least two classes are needed");
    for (std::uint8_t label : classes) dataset.class_names.push_back(std::to_string(label));
  }
  std::array<std::int32_t, 256> class_of;
  class_of.fill(-1);
  for (int i = 0; i < dataset.classes(); ++i) {
    class_of[std::stoul(dataset.class_names[static_cast<std::size_t>(i)])] = i;
  }
  for (std::size_t row = 0; row < bytes.size(); ++row) {
    const std::int32_t number = class_of[bytes[row]];
    if (number < 0) {
      fail(source.where, ": row ", row, " has label ", int{bytes[row]},
           ", which no training row has; give files that belong together");
    }
    dataset.labels.push_back(number);
  }
}

enum class IdxPart { kTraining, kTest };

// Whether a file is called so: "train-images-idx3-ubyte", or
// "emnist-letters-test-labels-idx1-ubyte" of EMNIST; each also with .gz.
bool is_called(std::string_view name, IdxPart part, std::string_view kind) {
  const std::string_view type = kind == "images" ? "idx3-ubyte" : "idx1-ubyte";
  const auto ends_in = [&](std::string_view stem) {
    return name.ends_with(concat(stem, "-", kind, "-", type)) ||
           name.ends_with(concat(stem, "-", kind, ".", type));
  };
  if (name.ends_with(".gz")) name.remove_suffix(3);
  return part == IdxPart::kTraining ? ends_in("train") : ends_in("t10k") || ends_in("test");
}

std::vector<std::string> find_files(const std::string& folder, IdxPart part,
                                    std::string_view kind) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const bool fits = is_called(entry.path().filename().string(), part, kind);
    if (fits && entry.is_regular_file(error)) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string require_file(const std::string& folder, IdxPart part, std::string_view kind) {
  const std::vector<std::string> found = find_files(folder, part, kind);
  check(!found.empty(), "folder ", folder, ": no file ",
        part == IdxPart::kTraining ? "train-" : "t10k-", kind, "-",
        kind == "images" ? "idx3-ubyte" : "idx1-ubyte",
        " (or .gz) found; the folder must hold the four IDX files of training and test set");
  if (found.size() > 1 && found[1] != found[0] + ".gz") {  // a compressed copy of the same
    fail("folder ", folder, ": ", std::filesystem::path(found[0]).filename().string(), " and ",
         std::filesystem::path(found[1]).filename().string(),
         " are both there; move the four files of one data set into a folder of their own");
  }
  return found[0];
}

Dataset join_idx(std::span<const IdxSources> parts, const std::string& name) {
  Dataset dataset;
  dataset.name = name;
  std::vector<IdxHeader> image_headers, label_headers;
  std::int64_t rows = 0;
  for (const IdxSources& part : parts) {
    const IdxHeader images = read_header(part.images, 3);
    const IdxHeader labels = read_header(part.labels, 1);
    check(images.count == labels.count, part.images.where, " holds ",
          counted(images.count, "image"), " but ", part.labels.where, " holds ",
          counted(labels.count, "label"), "; give files that belong together");
    image_headers.push_back(images);
    label_headers.push_back(labels);
    const IdxHeader& first = image_headers.front();
    check(images.height == first.height && images.width == first.width, part.images.where,
          ": images of ", images.height, " x ", images.width, " found, ", first.height, " x ",
          first.width, " expected as in the training set");
    rows += images.count;
  }
  check(!parts.empty(), "data set ", name, ": no IDX files given");
  dataset.image = {image_headers[0].height, image_headers[0].width, 1};
  dataset.allocate(rows, dataset.image.size(), Element::kByte);
  dataset.labels.reserve(static_cast<std::size_t>(rows));
  std::uint8_t* pixels = dataset.values.as<std::uint8_t>();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    read_payload(parts[i].images, image_headers[i], pixels);
    pixels += image_headers[i].payload_bytes;
    append_labels(dataset, parts[i].labels, label_headers[i]);
  }
  dataset.published_test_rows = rows - image_headers[0].count;
  return dataset;
}

// A file, and as much of it as an IdxSource wants in memory.
class OpenIdxFile {
 public:
  explicit OpenIdxFile(const std::string& path) : path_(path), file_(path) {
    load(std::min<std::uint64_t>(file_.size(), kMaxHeader));
    if (is_gzip(bytes_)) load(file_.size());
  }
  IdxSource source() const { return {bytes_, file_.size(), &file_, path_}; }

 private:
  void load(std::uint64_t size) {
    try {
      bytes_.resize(size);
    } catch (const std::exception&) {
      throw OutOfMemory(concat("cannot read ", path_, ": there is no memory for its ", size,
                               " bytes; check that it is the file that was meant"));
    }
    file_.read(0, {reinterpret_cast<std::uint8_t*>(bytes_.data()), bytes_.size()});
  }

  std::string path_;
  PiecewiseFile file_;
  std::string bytes_;
};

}  // namespace

Dataset parse_idx(std::span<const IdxPair> parts, const std::string& name) {
  std::vector<IdxSources> sources;
  for (const IdxPair& part : parts) {
    sources.push_back({{part.images, part.images.size(), nullptr, part.images_where},
                       {part.labels, part.labels.size(), nullptr, part.labels_where}});
  }
  return join_idx(sources, name);
}

Dataset read_idx_folder(const std::string& folder, const std::string& name) {
  std::vector<std::string> paths;
  for (const IdxPart part : {IdxPart::kTraining, IdxPart::kTest}) {
    for (const char* kind : {"images", "labels"}) paths.push_back(require_file(folder, part, kind));
  }
  const OpenIdxFile images(paths[0]), labels(paths[1]), test_images(paths[2]),
      test_labels(paths[3]);
  const std::array<IdxSources, 2> parts = {
      {{images.source(), labels.source()}, {test_images.source(), test_labels.source()}}};
  return join_idx(parts, name);
}

bool has_idx_files(const std::string& folder) {
  return !find_files(folder, IdxPart::kTraining, "images").empty();
}

}  // namespace tritgrad
