# cmake -DOUT=FILE -DDIR=FOLDER -DNAMES=a,b -P embed.cmake: writes a C++ source that holds NAME.csv as
# string literals, in pieces because compilers limit the length of one.
string(REPLACE "," ";" names "${NAMES}")
set(piece_bytes 30000)
set(arrays "")
set(rows "")
foreach(name IN LISTS names)
  file(READ "${DIR}/${name}.csv" text)
  string(LENGTH "${text}" length)
  set(pieces "")
  set(begin 0)
  while(begin LESS length)
    string(SUBSTRING "${text}" ${begin} ${piece_bytes} piece)
    string(APPEND pieces "    R\"csv(${piece})csv\",\n")
    math(EXPR begin "${begin} + ${piece_bytes}")
  endwhile()
  string(APPEND arrays "constexpr std::string_view k_${name}[] = {\n${pieces}};\n")
  string(APPEND rows "      {\"${name}\", k_${name}},\n")
endforeach()
file(WRITE "${OUT}" "// Generated from engine/data/*.csv by engine/data/embed.cmake.
#include \"engine/builtin_data.h\"

namespace tritgrad {
namespace {

${arrays}
}  // namespace

std::span<const BuiltinData> builtin_data() {
  static constexpr BuiltinData kSets[] = {
${rows}  };
  return kSets;
}

}  // namespace tritgrad
")
