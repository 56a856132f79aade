#!/usr/bin/env bash
# What the fuzzers begin from: the repository's own files and a few texts. Usage: seeds.sh FUZZER FOLDER
# Readers of data begin from nothing; fuzz_texts and fuzz_tools get files behind the byte that chooses the reader.
set -euo pipefail
mkdir -p -- "$2"
out=$(realpath -- "$2")
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

# seed READER NAME: what comes in, behind the byte that chooses the reader.
seed() {
  { printf "\\x$1" && cat; } >"$out/$1-$2"
}

seed_texts() {
  local file reader text number
  for file in models/recipes/*.toml models/recipes/language/*.toml; do
    seed 00 "$(basename "$(dirname "$file")")-$(basename "$file")" <"$file"
  done
  seed 04 run.json <tests/fuzz/seeds/run.json
  seed 05 result.json <tests/fuzz/seeds/result.json
  seed 06 table.json <tests/fuzz/seeds/table.json
  number=0
  while read -r reader text; do
    number=$((number + 1))
    printf '%s' "$text" | seed "$reader" "$number"
  done <<'TEXTS'
01 weight.lr=0.1
01 weight.threshold=31
01 clip_grad_norm=1
01 compute=fp32
02 mlp:64,64
02 mlp:512:norm=layer:activation=tanh:dropout=0.1
02 conv:16,M,32,M
02 conv:16,R,32/2,F64:dropout=0.1
02 conv:8x8x1-6-R-8/2-F20-3
02 llama:4,256:heads=4:kv=2:ff=512:context=64:tie=yes
03 shift=2,flip
03 crop=4,flip
03 none
TEXTS
}

seed_tools() {
  local file
  for file in tools/*.toml; do seed 00 "$(basename "$file")" <"$file"; done
  # A black row of 1024 pixels.
  base64 -d <<<"iVBORw0KGgoAAAANSUhEUgAABAAAAAABCAIAAADPbEtiAAAAGUlEQVR42u3BAQEAAACCIP+vbkhAAQAANwYMAQABGujo+AAAAABJRU5ErkJggg==" | seed 01 row.png
}

case $1 in
  fuzz_texts) seed_texts ;;
  fuzz_tools) seed_tools ;;
esac
echo "$(find "$out" -type f | wc -l) seeds in $out"
