#include "engine/files/read_file.h"

#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>

#include "engine/check.h"

namespace tritgrad {

std::string read_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  check(std::filesystem::exists(status), "cannot read ", path,
        ": there is no such file; check the path");
  check(std::filesystem::is_regular_file(status), "cannot read ", path,
        ": it is not a regular file; give the path of a file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  check(file.is_open(), "cannot read ", path, ": ", std::strerror(errno));
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  check(!error, "cannot read ", path, ": ", error.message());
  std::string bytes;
  try {
    bytes.resize(size);
  } catch (const std::exception&) {
    fail("cannot read ", path, ": there is no memory for its ", size,
         " bytes; check that it is the file that was meant");
  }
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  check(file.gcount() == static_cast<std::streamsize>(size), "cannot read ", path, ": only ",
        file.gcount(), " of ", size, " bytes could be read");
  return bytes;
}

}  // namespace tritgrad
