#!/usr/bin/env bash
# No file compiled for an instruction set may offer a symbol that others could pick up: the linker keeps
# one copy of a weak symbol, and if that is the AVX-512 one, a plain caller dies on an older processor.
# So every weak symbol of target_NAME.cpp must carry NAME in its own.
# Usage: check_symbols.sh LIBRARY.a
set -euo pipefail

nm --defined-only "$1" 2>/dev/null | awk '
/^[^ ]+\.o:$/ {
  object = substr($0, 1, length($0) - 1)
  target = object
  sub(/\..*/, "", target)
  # The baseline has the flags of every other file.
  watched = sub(/^target_/, "", target) && target != "baseline"
  objects += watched
  next
}
watched && $2 ~ /^[WVu]$/ {
  ++symbols
  # DW.ref.*: a pointer to the exception handler of the C++ run-time, data without instructions.
  if (index($3, target) == 0 && $3 !~ /^DW\.ref\./) {
    printf "%s: weak symbol %s can replace the one of a plain file\n", object, $3
    failed = 1
  }
}
END {
  if (objects == 0) {
    print "no target_NAME.cpp.o in the library"
    failed = 1
  }
  if (!failed) printf "symbols: %d weak ones in %d kernel objects, all private\n", symbols, objects
  exit failed
}'
