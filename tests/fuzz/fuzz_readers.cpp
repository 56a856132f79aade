// libFuzzer entry for every reader of data files. The first byte chooses the reader; readers of two
// files split the rest at the length that the next two bytes give. Chance makes no checksums, so
// compressed files are also made from their contents. A refusal (Error) is a good result.
//
//   cmake --preset fuzz && cmake --build --preset fuzz --target fuzz_readers
//   ctest --preset fuzz -R '^smoke_fuzz_readers$' --verbose
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/check.h"
#include "engine/data/cifar.h"
#include "engine/data/csv.h"
#include "engine/data/idx.h"
#include "engine/data/npy_dataset.h"
#include "engine/data/piece_model.h"
#include "engine/data/table_text.h"
#include "engine/data/vocabulary.h"
#include "tests/support/compressed.h"
#include "tests/support/piece_file.h"

namespace {

using tritgrad::CsvOptions;

constexpr std::size_t kCifarRecord = 3073;

struct TwoFiles {
  std::string_view first, second;
};

TwoFiles split(std::string_view bytes) {
  if (bytes.size() < 2) return {bytes, {}};
  const auto low = static_cast<unsigned char>(bytes[0]);
  const auto high = static_cast<unsigned char>(bytes[1]);
  bytes.remove_prefix(2);
  const std::size_t cut = std::min<std::size_t>(low + 256u * high, bytes.size());
  return {bytes.substr(0, cut), bytes.substr(cut)};
}

void read_table(const std::string& bytes) {
  tritgrad::parse_csv(tritgrad::decode_table_text(bytes, "csv"), "csv", CsvOptions());
}

// Tables in other codes, and archives.
void read_packed(unsigned reader, std::string_view bytes) {
  using tritgrad::test::gzip;
  const std::string all(bytes);
  if (reader == 7) read_table(all);
  if (reader == 8) read_table("\xFF\xFE" + all);
  if (reader == 9) read_table("\xFE\xFF" + all);
  if (reader == 10) read_table("\x1F\x8B\x08" + all);
  if (reader == 11) read_table(gzip(all));
  if (reader == 12) tritgrad::parse_npz("PK\x03\x04" + all, "npz");
  if (reader < 13) return;
  const auto [first, second] = split(bytes);
  const std::string x(second), y(first);
  tritgrad::parse_npz(tritgrad::test::zip_file({{"X.npy", x}, {"y.npy", y}}, reader == 14), "npz");
}

// Labels that are numbers to predict.
void read_targets(unsigned reader, std::string_view bytes) {
  constexpr auto kRegress = tritgrad::TaskKind::kRegress;
  if (reader == 15) {
    CsvOptions options;
    options.task = kRegress;
    tritgrad::parse_csv(bytes, "csv", options);
    return;
  }
  const auto [first, second] = split(bytes);
  const std::array<tritgrad::NpyPair, 1> pairs = {tritgrad::NpyPair{second, first, "x", "y"}};
  tritgrad::parse_npy_pairs(pairs, "npy", nullptr, kRegress);
}

// A tokenizer alone, or one that is changed by what follows it, and a text for its pieces.
void read_tokenizer(bool is_changed, std::string_view bytes) {
  if (!is_changed) {
    tritgrad::parse_piece_model(bytes, "tokenizer");
    return;
  }
  static const std::string kPieces = tritgrad::test::piece_file({"a", "b", "ab", "aab"}).bytes();
  const auto [first, text] = split(bytes);
  const auto vocabulary = tritgrad::Vocabulary::of_pieces(kPieces + std::string(first), "pieces");
  if (vocabulary.decode(vocabulary.encode(text)) != text) std::abort();
}

constexpr unsigned kReaders = 19;

void read(unsigned reader, std::string_view bytes) {
  if (reader < 3) {
    CsvOptions options;
    options.header = static_cast<CsvOptions::Header>(reader);
    if (reader == 1) options.label = "label";
    tritgrad::parse_csv(bytes, "csv", options);
    return;
  }
  if (reader >= 15) {
    reader >= 17 ? read_tokenizer(reader == 18, bytes) : read_targets(reader, bytes);
    return;
  }
  if (reader >= 7) {
    read_packed(reader, bytes);
    return;
  }
  if (reader >= 5) {
    std::string records(bytes);
    // Chance hardly ever makes whole records.
    if (reader == 6)
      records.resize((records.size() + kCifarRecord - 1) / kCifarRecord * kCifarRecord);
    tritgrad::parse_cifar(records, "cifar");
    return;
  }
  const auto [first, second] = split(bytes);
  if (reader == 3) {
    const std::array<tritgrad::IdxPair, 1> parts = {
        tritgrad::IdxPair{second, first, "images", "labels"}};
    tritgrad::parse_idx(parts, "idx");
  } else {
    const std::array<tritgrad::NpyPair, 1> pairs = {tritgrad::NpyPair{second, first, "x", "y"}};
    tritgrad::parse_npy_pairs(pairs, "npy");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    read(data[0] % kReaders, {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const tritgrad::Error&) {
  }
  return 0;
}
