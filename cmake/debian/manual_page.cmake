# Makes the manual page ${manual}.gz of what ${program} --help prints, when the package is made.
execute_process(
  COMMAND help2man --no-info --name "train neural networks in ternary weights" --output "${manual}" "${program}"
  RESULT_VARIABLE result
  ERROR_VARIABLE errors)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the manual page could not be made, help2man says '${result} ${errors}'; install Debian's "
                      "help2man, and build tritgrad_cli")
endif()
# Each example has a line of its own.
file(READ "${manual}" page)
string(REGEX REPLACE "\n(tritgrad |'tritgrad |\\\\&'tritgrad )" "\n.br\n\\1" page "${page}")
file(WRITE "${manual}" "${page}")
file(ARCHIVE_CREATE OUTPUT "${manual}.gz" PATHS "${manual}" FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
