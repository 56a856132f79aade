#!/usr/bin/env bash
# No file compiled for an instruction set may offer a symbol that others could pick up: the linker keeps
# one copy of a weak symbol, and if that is the AVX-512 one, a plain caller dies on an older processor.
# So every external symbol of target_NAME.cpp must carry NAME in its own, and no other file may define
# one that does. Usage: check_symbols.sh LIBRARY.a
set -euo pipefail

nm --defined-only --extern-only "$1" 2>/dev/null | awk '
function complain(what) {
  printf "%s: %s %s\n", object, $3, what
  failed = 1
}
/^[^ ]+\.o:$/ {
  object = substr($0, 1, length($0) - 1)
  target = object
  sub(/\..*/, "", target)
  # The baseline has the flags of every other file.
  watched = sub(/^target_/, "", target) && target != "baseline"
  objects += watched
  next
}
# DW.ref.*: a pointer to the exception handler of the C++ run-time, data without instructions.
NF != 3 || $3 ~ /^DW\.ref\./ { next }
watched {
  ++symbols
  if (index($3, target) == 0) complain("could replace the one of a plain file")
}
!watched && $3 ~ /avx/ { complain("belongs to an instruction set") }
END {
  if (objects == 0) {
    print "no target_NAME.cpp.o in the library"
    failed = 1
  }
  if (!failed) printf "symbols: %d in %d kernel objects, all private\n", symbols, objects
  exit failed
}'
