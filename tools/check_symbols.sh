#!/bin/sh
# Usage: check_symbols.sh OBJECT...
#
# Fails when code for one instruction set could be linked into code for another. The linker keeps one copy
# of a symbol that several objects define, so every external symbol that target_avx2 or target_avx512
# defines must contain that name, and no other object may define a symbol that contains one.
#
# Not counted: DW.ref.__gxx_personality_v0, by which a compiler refers to the exception personality. It is
# a pointer, the same in every object, and holds no instructions.
set -eu

[ $# -gt 0 ] || { echo "usage: $0 OBJECT..." >&2; exit 2; }

status=0
for object in "$@"; do
  symbols=$(nm --defined-only --extern-only "$object" | awk '{ print $NF }' |
            grep -v '^DW\.ref\.__gxx_personality_v0$' || true)
  case ${object##*/} in
    target_avx512.*) offending=$(printf '%s\n' "$symbols" | grep -v avx512 || true) ;;
    target_avx2.*) offending=$(printf '%s\n' "$symbols" | grep -v avx2 || true) ;;
    *) offending=$(printf '%s\n' "$symbols" | grep -E 'avx2|avx512' || true) ;;
  esac
  if [ -n "$offending" ]; then
    echo "$object defines symbols of the wrong instruction set:"
    printf '%s\n' "$offending" | c++filt | sed 's/^/  /'
    status=1
  fi
done
exit $status
