#!/usr/bin/env bash
# A compiler that takes a function which does nothing but ask for memory for one without effect drops its
# calls, and nothing but time shows it (HACKING.md, Traps). So the kernels of each instruction set that go through
# whole tensors, and the product that asks for what is read after it (one of its functions is enough, as all call what
# is always inlined), must ask for memory.
# Usage: check_prefetch.sh LIBRARY.a
set -euo pipefail
root=$(cd -- "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

names="multiply_ descend_latent descend_ternary descend_shared write_row_levels ::adamw( flash_ sum_of_squares encode_split8"
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
    echo "$1: $kernels: nothing asks for memory, or has that name, where memory is asked for ahead:$silent"
    exit 1
  fi
done
echo "prefetch: kernels ask for memory ($names) on $looked instruction sets"
