#!/usr/bin/env bash
# What the fuzzers begin from: the repository's own files and a few texts. Usage: seeds.sh FUZZER FOLDER
# Most begin with a byte that chooses the reader. Readers of data begin from nothing, but for the tokenizer.
set -euo pipefail
mkdir -p -- "$2"
out=$(realpath -- "$2")
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

# seed READER NAME: what comes in, behind the byte (or bytes, 00\x05) that chooses the reader.
seed() {
  { printf "\\x$1" && cat; } >"$out/${1//\\x/}-$2"
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
  seed 02 train.toml <<'CONFIG'
data = "wine"
model = "mlp:64,64"
recipe = "votes"
epochs = 20
all-rows = true
val = 0.1
missing = "mean"
[set]
weight.lr = 0.1
CONFIG
  seed 03 cached.json <tests/fuzz/seeds/cached.json
  seed 04 labels.json <<<'[7, 0, 9, 3, 1]'
  # A black row of 1024 pixels.
  base64 -d <<<"iVBORw0KGgoAAAANSUhEUgAABAAAAAABCAIAAADPbEtiAAAAGUlEQVR42u3BAQEAAACCIP+vbkhAAQAANwYMAQABGujo+AAAAABJRU5ErkJggg==" | seed 01 row.png
}

# piece TYPE TEXT: a piece of a tokenizer as Protocol Buffers have it: text, a score of 0, type.
piece() {
  printf "\\x0a\\x$(printf %02x $((${#2} + 9)))\\x0a\\x$(printf %02x ${#2})%s\\x15\\0\\0\\0\\0\\x18\\x$1" "$2"
}

# As SentencePiece's trainer writes them: unknown, begin, end, all bytes, a few pieces; of byte pairs, which
# changes no text.
tokenizer() {
  local byte text
  piece 02 '<unk>'
  piece 03 '<s>'
  piece 03 '</s>'
  for ((byte = 0; byte < 256; byte++)); do piece 06 "$(printf '<0x%02X>' "$byte")"; done
  for text in a b ab aab; do piece 01 "$text"; done
  printf '\x12\x02\x18\x02\x1a\x0c\x0a\x08identity\x20\0'
}

seed_readers() {
  tokenizer | seed 11 pieces.model
  printf '\0\0abaab' | seed 12 text
}

# The target, then a byte that chooses a recipe and options.
seed_exports() {
  local target choice model
  for target in 00 01 02 03 04 05; do
    for choice in 00 05 0a 1b; do
      seed "$target\\x$choice" table <<'TABLE'
mlp:3:norm=layer
width,"colour, of ""it""",kind
1,red,a*/
2,blue,</script>
0.5,red,a*/
3,,b
1.5,blue,b
2.5,red,</script>
TABLE
    done
    # Rows of four numbers as images of 2 x 2 pixels.
    for choice in 40 41 52 63; do
      for model in conv:3,M conv:2,R,4/2,F3; do
        { echo "$model" && printf '%s\n' a,b,c,d,kind 1,2,3,4,x 4,3,2,1,y 2,2,2,2,x 0,1,0,1,y 5,5,1,1,x 1,1,5,5,y; } |
          seed "$target\\x$choice" "${model//\//-}"
      done
    done
  done
  for choice in 00 01 02 03; do
    seed "06\\x$choice" bytes </dev/null
    tokenizer | seed "06\\x$choice" pieces.model
  done
}

# Calls that make data, a run and a model of it, and texts of their own (behind a byte from 128 on).
seed_c() {
  printf '\x80{"data": "wine"}\0' | seed 00 open
  printf '\x07\x05\x01\x02\x06\x01\x09\x01\x0c\x01\x0e\x01\x01\x01\x00' | seed 04 run
  printf '\x80{"model": "mlp:9:norm=layer", "val": 0.5}\0\x06\x01\x07\x01' | seed 04 'spec'
  printf '\x02\x01\x80{"temperature": 0, "length": 3}\0' | seed 12 generate
  printf '\x03\x05\x05\x01\x00\x01\x01\x80{"image": [2, 2, 1], "class_names": ["a", "b"]}\0' | seed 01 arrays
}

case $1 in
  fuzz_c) seed_c ;;
  fuzz_exports) seed_exports ;;
  fuzz_readers) seed_readers ;;
  fuzz_texts) seed_texts ;;
  fuzz_tools) seed_tools ;;
esac
echo "$(find "$out" -type f | wc -l) seeds in $out"
