#!/usr/bin/env bash
# A compiler that takes a function which does nothing but ask for memory for one without effect drops its
# calls, and nothing but time shows it (HACKING.md, Traps). So of the formats that declare prefetch(),
# Storage::decode_trits() must ask for memory, but of those which decode a tile as the one run of memory that it
# is; and so must the kernels of each instruction set that go through whole tensors.
# Usage: check_prefetch.sh LIBRARY.a
set -euo pipefail
root=$(cd -- "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
formats=$root/engine/formats
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

names="descend_latent descend_ternary descend_shared write_row_levels adamw flash_update sum_of_squares encode_split8"
looked=0
for source in $(grep -l 'kernels-inl.h' "$root"/ops/kernels/target_avx*.cpp); do
  kernels=$(basename "$source").o
  ar t "$1" | grep -qx "$kernels" || continue # a portable build
  looked=$((looked + 1))
  ar p "$1" "$kernels" >"$work/kernels.o"
  silent=$(objdump -dC --no-show-raw-insn "$work/kernels.o" | awk -v names="$names" '
BEGIN { split(names, all) }
/^[0-9a-f]+ <.*>:$/ {
  delete here
  for (i in all) if (index($0, all[i])) here[all[i]] = 1
}
/prefetch/ { for (name in here) asks[name] = 1 }
END { for (i in all) if (!(all[i] in asks)) printf " %s", all[i] }')
  if [ -n "$silent" ]; then
    echo "$1: $kernels: nothing asks for memory, or has that name, in what read_ahead() is called in:$silent"
    exit 1
  fi
done
echo "prefetch: kernels ask for memory ($names) on $looked instruction sets"
