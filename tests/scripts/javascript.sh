#!/usr/bin/env bash
# Runs exported ES modules in Node: the bits of all logits are those of the C header of the same network, and rows of a
# table with words and missing cells are taken for the classes that 'tritgrad eval' takes them for.
# Usage: javascript.sh TRITGRAD
# Exit status 77: Node is not installed.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
source "$here/scripts/readers.sh"
need nodejs node
need gcc cc
tritgrad=$(realpath -- "$1")
support=$here/support/javascript
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
cd -- "$folder"
echo '{"type": "module"}' >package.json  # what ends in .js is an ES module

# rows_of CSV: the rows without names and labels.
rows_of() { tail -n +2 "$1" | sed 's/,[^,]*$//'; }

# compare ROWS.csv TYPE TRAIN-OPTIONS...: trains, exports, and compares logits in C and in Node.
compared=0
compare() {
  local rows=$1 type=$2
  shift 2
  "$tritgrad" train --quiet --epochs 2 "$@" --save m.safetensors
  "$tritgrad" export m.safetensors --to m.h >/dev/null
  "$tritgrad" export m.safetensors --to m.js >/dev/null
  cc -std=c99 -pedantic -Wall -Wextra -Werror -O2 -ffp-contract=off -I. '-DMODEL="m.h"' -DNAME=m -DPREFIX=M \
    "-DFEATURE=$type" "$support/logits.c" -o logits -lm
  ./logits <"$rows" >there.txt
  node "$support/logits.mjs" m.js <"$rows" >here.txt
  [[ -s here.txt ]] && cmp here.txt there.txt || {
    echo "javascript: the logits in Node differ from those in C: $*" >&2
    exit 1
  }
  compared=$((compared + $(wc -l <here.txt)))
}

for data in iris wdbc digits; do rows_of "$here/../engine/data/$data.csv" >"$data.csv"; done
compare digits.csv float --data digits --model mlp:32 --recipe latent8
compare digits.csv float --data digits --model mlp:35,20 --recipe votes --set weight.group=32
compare digits.csv float --data digits --model conv:8,M,12 --recipe latent8
compare digits.csv float --data digits --model conv:8,R,12/2,F20:dropout=0.1 --recipe latent8
compare wdbc.csv float --data wdbc --model mlp:24,9:norm=layer:activation=tanh --recipe shared8
compare wdbc.csv float --data wdbc --model mlp:24:norm=rms:activation=squared_relu --recipe eco
compare iris.csv float --data iris --model mlp:8:norm=none --recipe latent5
# Sums in floats: the header and the module add them up in the same order, whatever our inference does.
compare digits.csv float --data digits --model mlp:16 --recipe fp32
compare digits.csv float --data digits --model conv:4,M --recipe flash-adamw
compare wdbc.csv float --data wdbc --model mlp:16:norm=layer --recipe master
compare wdbc.csv float --data wdbc --model mlp:16 --recipe latent8 --compute fp32

# Seconds of this century, beside which fp32 loses minutes: an offset is subtracted before they become floats.
awk -v OFS=, 'BEGIN { print "time,size,class"; for (i = 0; i < 200; i++) print 1700000000 + 7 * i, i % 13, i % 3 }' >t.csv
rows_of t.csv >times.csv
compare times.csv double --data t.csv --model mlp:8 --recipe latent8
echo "javascript: logits of $compared rows are equal in Node and in C, bit by bit"

# table COLOURS: 300 rows with words, numbers, and some cells of both missing; the class depends on both. The sizes are in
# a column whose name every object of JavaScript has something under.
table() {
  awk -v OFS=, -v colours="$1" 'BEGIN {
    srand(1); split(colours, colour, ":"); split("S M L", size, " ")
    print "colour,constructor,age,class"
    for (i = 0; i < 300; i++) {
      c = 1 + int(3 * rand()); s = 1 + int(3 * rand()); a = 18 + int(70 * rand())
      class = (c == 1) + (s == 3) + (a > 50) >= 2 ? "yes" : "no"
      print rand() < 0.1 ? (i % 2 ? "?" : "") : colour[c], size[s], rand() < 0.1 ? (i % 2 ? "NA" : "") : a, class
    }
  }'
}
table 'red:dark blue:green' >known.csv
table 'red:dark blue:purple' >unknown.csv
for missing in mean mode; do
  "$tritgrad" train --quiet --data known.csv --missing "$missing" --model mlp:16 --recipe latent8 --epochs 10 \
    --save m.safetensors 2>/dev/null
  "$tritgrad" export m.safetensors --to m.js >/dev/null 2>&1
  for data in known unknown; do
    # Without the last row, for of the data that it was trained on only the test rows would be scored.
    head -n -1 "$data.csv" >other.csv
    "$tritgrad" eval m.safetensors --data other.csv --json - 2>/dev/null |
      sed -n 's/.*"counts":\(\[\[[^]]*\],\[[^]]*\]\]\).*/\1/p' >there.txt
    node "$support/table.mjs" m.js other.csv >here.txt
    [[ -s here.txt ]] && cmp here.txt there.txt || {
      echo "javascript: rows of $data.csv are taken for other classes than by eval (--missing $missing)" >&2
      exit 1
    }
  done
done
# In quotes, blanks are part of a word.
awk 'BEGIN { print "a,y"; for (i = 0; i < 40; i++) print i % 2 ? "\" red \",x" : "red,z" }' >quotes.csv
"$tritgrad" train --quiet --data quotes.csv --model mlp:4 --recipe latent8 --epochs 1 --save m.safetensors 2>/dev/null
"$tritgrad" export m.safetensors --to m.js >/dev/null
node --input-type=module -e '
  import assert from "node:assert/strict";
  import { pathToFileURL } from "node:url";
  const { columns, encode } = await import(pathToFileURL("m.js"));
  assert.deepEqual(columns[0].words, [" red ", "red"]);
  assert.deepEqual([" red ", "red", "\tred  "].map((cell) => encode([cell])), [[1, 0], [0, 1], [0, 1]]);
'
echo "javascript: rows with words and missing cells are taken for the classes that eval takes them for"

# The code of the document, where it says that it runs.
"$tritgrad" train --quiet --data wdbc --model mlp:24 --recipe latent8 --epochs 10 --save wdbc.safetensors
"$tritgrad" export wdbc.safetensors --to wdbc.js >/dev/null
mv -- wdbc.js wdbc.mjs
mkdir -p engine/data
cp -- "$here/../engine/data/wdbc.csv" engine/data
code_of "$here/../docs/EXPORT_WEB.md" js wdbc.mjs >rows.mjs
node rows.mjs >said.txt
[[ $(head -n 3 said.txt | sed -E 's/ \([01]\.[0-9]+\), in the data malignant$//') == $'malignant\nmalignant\nmalignant' ]] &&
  [[ $(sed -n 4p said.txt) == "30 numbers: mean_radius, "* && $(sed -n '5,$p' said.txt) == malignant ]] || {
  echo "javascript: the code of docs/EXPORT_WEB.md says something else than the data:" >&2
  cat said.txt >&2
  exit 1
}
echo "javascript: the code of docs/EXPORT_WEB.md runs"
