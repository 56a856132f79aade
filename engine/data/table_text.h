// The text of a table from what lies in a file or comes through a pipe.
#pragma once

#include <string>

namespace tritgrad {

// Returns `bytes` as UTF-8: unpacked where they are compressed by gzip, converted where a byte
// order mark says that they are UTF-16, else as they are. `where` names the source in messages.
// Throws Error for bytes that are damaged, and for those of formats that are taken for tables and
// are none.
std::string decode_table_text(std::string bytes, const std::string& where);

// How messages and results call the source of `path`, which is "-" for standard input: the first
// whole, the second as the short name of a data set.
std::string table_source(const std::string& path);
std::string table_name(const std::string& path);

}  // namespace tritgrad
