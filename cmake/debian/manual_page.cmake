# Makes the manual page ${manual_page}.gz of what ${program} --help prints, when the package is made.
execute_process(
  COMMAND help2man --no-info --name "train neural networks in ternary weights" --output "${manual_page}" "${program}"
  RESULT_VARIABLE result
  ERROR_VARIABLE errors)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the manual page could not be made, help2man says '${result} ${errors}'; install Debian's "
                      "help2man, and build tritgrad_cli")
endif()
# Each example has a line of its own.
file(READ "${manual_page}" page)
string(REGEX REPLACE "\n(tritgrad )" "\n.br\n\\1" page "${page}")
file(WRITE "${manual_page}" "${page}")
file(ARCHIVE_CREATE OUTPUT "${manual_page}.gz" PATHS "${manual_page}" FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
