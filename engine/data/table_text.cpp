#include "engine/data/table_text.h"

#include <utf8cpp/utf8.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "engine/check.h"
#include "engine/files/gzip.h"

namespace tritgrad {
namespace {

// The first bytes of files that are taken for tables and are none, and what to do about them.
struct ForeignBeginning {
  std::string_view bytes, advice;
};
constexpr ForeignBeginning kForeign[] = {
    {"PK\x03\x04",
     "the file is a zip archive or a spreadsheet; unpack it, or save the table as CSV; an archive "
     "of NumPy must be a file whose name ends in .npz"},
    {"BZh91AY", "the file is compressed by bzip2; unpack it first (bunzip2 -k)"},
    {"\xFD\x37zXZ", "the file is compressed by xz; unpack it first (unxz -k)"},
    {"\x28\xB5\x2F\xFD", "the file is compressed by zstd; unpack it first (unzstd)"},
    {"PAR1\x15", "the file is in Parquet; save the table as CSV"},
    {"\x93NUMPY", "the file is a NumPy array; give features and labels as x.npy,y.npy"},
    {std::string_view("\xFF\xFE\0\0", 4), "the file is in UTF-32; save it as UTF-8"},
    {std::string_view("\0\0\xFE\xFF", 4), "the file is in UTF-32; save it as UTF-8"},
};

// A spreadsheet's text of Latin letters is half NULs, which no other text has.
void check_for_utf16(std::string_view bytes, const std::string& where) {
  constexpr std::size_t kLooked = 256;
  bytes = bytes.substr(0, std::min(bytes.size(), kLooked) / 2 * 2);
  std::size_t low = 0, high = 0;  // NULs at even and at odd places
  for (std::size_t i = 0; i < bytes.size(); ++i) (i % 2 == 0 ? low : high) += bytes[i] == '\0';
  const bool big_endian = low > high;
  check(std::max(low, high) * 4 <= bytes.size() || std::min(low, high) > 0, where,
        ": the file looks like UTF-16 without a byte order mark; save it as UTF-8, or convert it: "
        "iconv -f UTF-16",
        big_endian ? "BE" : "LE", " -t UTF-8");
}

std::string text_of_utf16(std::string_view bytes, bool big_endian, const std::string& where) {
  check(bytes.size() % 2 == 0, where,
        ": an odd number of bytes found, UTF-16 has two for each character; the file is cut short");
  std::u16string characters;
  characters.reserve(bytes.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    const auto first = static_cast<unsigned char>(bytes[i]);
    const auto second = static_cast<unsigned char>(bytes[i + 1]);
    characters += static_cast<char16_t>(big_endian ? first << 8 | second : second << 8 | first);
  }
  std::string text;
  text.reserve(characters.size());
  try {
    utf8::utf16to8(characters.begin(), characters.end(), std::back_inserter(text));
  } catch (const utf8::exception&) {
    fail(where, ": half of a character of UTF-16 is missing behind ", text.size(),
         " bytes of text; save the file as UTF-8");
  }
  return text;
}

}  // namespace

std::string decode_table_text(std::string bytes, const std::string& where) {
  if (is_gzip(bytes)) bytes = gunzip(bytes, where);
  check(!is_gzip(bytes), where, ": the file is compressed twice; unpack it once (gunzip -k)");
  for (const ForeignBeginning& foreign : kForeign) {
    check(!bytes.starts_with(foreign.bytes), where, ": ", foreign.advice);
  }
  const std::string_view text = bytes;
  if (text.starts_with("\xFF\xFE")) return text_of_utf16(text.substr(2), false, where);
  if (text.starts_with("\xFE\xFF")) return text_of_utf16(text.substr(2), true, where);
  check_for_utf16(text, where);
  return bytes;
}

std::string table_source(const std::string& path) { return path == "-" ? "standard input" : path; }

std::string table_name(const std::string& path) {
  if (path == "-") return "stdin";
  // What a shell makes of <(COMMAND).
  if (path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/")) return "pipe";
  std::filesystem::path name(path);
  if (name.extension() == ".gz") name = name.stem();
  return name.stem().string();
}

}  // namespace tritgrad
