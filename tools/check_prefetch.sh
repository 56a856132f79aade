#!/usr/bin/env bash
# A compiler that takes a function which does nothing but ask for memory for one without effect drops its
# calls, and nothing but time shows it (HACKING.md, Traps). So of the formats that declare prefetch(),
# Storage::decode_trits() must ask for memory, but of those which decode a tile as the one run of memory that it
# is. Usage: check_prefetch.sh LIBRARY.a
set -euo pipefail
formats=$(cd -- "$(dirname "${BASH_SOURCE[0]}")/../engine/formats" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ar p "$1" storage.cpp.o >"$work/storage.o"
declared=$(grep -l 'void prefetch(' "$formats"/*.h |
  xargs grep -L 'void decode_trits(const Block& first, std::int64_t rows,' | wc -l)
# Inlined, or a call that has stayed one.
asking=$(objdump -dC --no-show-raw-insn "$work/storage.o" | awk '
/^[0-9a-f]+ <.*>:$/ { reads = /Storage::decode_trits/; counted = 0; next }
reads && !counted && /prefetch|prfm/ { counted = 1; ++asking }
END { print asking + 0 }')
if [ "$asking" -lt "$declared" ]; then
  echo "$1: storage.cpp.o: $asking formats ask for the memory of trits that are read next, but $declared headers" \
    "in engine/formats/ declare prefetch()"
  exit 1
fi
echo "prefetch: $asking formats ask for memory, of $declared headers"
