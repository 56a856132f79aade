#!/usr/bin/env bash
# Exported ONNX models in onnxruntime: classes and logits are those of the same models as C headers, whose bits
# tests/models/export/test_c_header.cpp compares with our own inference. And the checker of Debian's python3-onnx
# accepts the form with standard operators.
# Usage: onnx.sh TRITGRAD                       trains small networks of every kind
#        onnx.sh TRITGRAD CHECKPOINT ROWS.csv   a model whose products are in integers, and rows of its features
# Exit status 77: npm has no onnxruntime-node, or python3-onnx is not installed.
set -euo pipefail
tritgrad=$(realpath -- "$1")
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
source "$here/scripts/readers.sh"
need gcc cc
need "nodejs, npm" node npm
# (Debian's own Python, which another one may hide.)
/usr/bin/python3 -c 'import onnx' 2>/dev/null || missing "Python's onnx" "Debian's python3-onnx"

readers=$(dirname -- "$tritgrad")/readers
install_with_npm "$here/readers" "$readers" onnxruntime-node

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cases=()

# reference FOLDER NUMBER TERMS LAST_INPUTS: makes m.h of m.safetensors, and what it computes of rows.csv, or of cells.csv
# where that is there: the same rows before they are features.
reference() {
  local rows=$1/rows.csv encodes=()
  if [[ -f $1/cells.csv ]]; then rows=$1/cells.csv encodes=(-DENCODES); fi
  "$tritgrad" export "$1/m.safetensors" --to "$1/m.h" >/dev/null
  cc -std=c99 -O2 -Wall -Wextra -Werror -ffp-contract=off "-DMODEL=\"$1/m.h\"" -DNAME=m -DPREFIX=M "-DNUMBER=$2" \
    "-DTERMS=$3" "-DLAST_INPUTS=$4" ${encodes[@]+"${encodes[@]}"} "$here/readers/reference.c" -o "$1/reference.exe" -lm
  "$1/reference.exe" <"$rows" >"$1/reference"
}

# exports FOLDER CHECKPOINT: in all forms.
exports() {
  "$tritgrad" export "$2" --to "$1/m.onnx" >/dev/null
  "$tritgrad" export "$2" --to "$1/standard.onnx" --onnx-ops standard >/dev/null
  "$tritgrad" export "$2" --to "$1/raw.onnx" --raw-inputs >/dev/null
}

# compare KIND NAME NUMBER TERMS LAST_INPUTS [TRAINING...]: trains, or takes $checkpoint, and compares on $rows, of which
# the header has the cells in $cells if that is a file. KIND is `equal`, or `near` where sums in floats or tanh come
# before the logits (reference.c).
cells=
compare() {
  local kind=$1 folder=$work/$2 number=$3 terms=$4 last=$5
  shift 5
  mkdir "$folder"
  cp -- "$rows" "$folder/rows.csv"
  if [[ -n $cells ]]; then cp -- "$cells" "$folder/cells.csv"; fi
  if (($#)); then
    "$tritgrad" train --quiet --threads 1 --save "$folder/m.safetensors" "$@"
  else
    cp -- "$checkpoint" "$folder/m.safetensors"
  fi
  reference "$folder" "$number" "$terms" "$last"
  exports "$folder" "$folder/m.safetensors"
  echo "{\"equal\": $([[ $kind == equal ]] && echo true || echo false), \"terms\": $terms}" >"$folder/case.json"
  cases+=("$folder")
}

small_networks() {
  rows=$work/digits.csv
  tail -n +2 "$here/../engine/data/digits.csv" | sed 's/,[^,]*$//' >"$rows"
  digits=(--data digits --epochs 2)
  compare equal latent8_batch float 0 0 "${digits[@]}" --model mlp:72,40 --recipe latent8
  compare equal votes_layer float 0 0 "${digits[@]}" --model mlp:48,24:norm=layer:activation=squared_relu --recipe votes
  compare equal shared8_rms float 0 0 "${digits[@]}" --model mlp:200,33:norm=rms --recipe shared8
  compare equal trits_none float 0 0 "${digits[@]}" --model mlp:30:norm=none --recipe trits
  compare equal latent8_conv float 0 0 "${digits[@]}" --model conv:8,M,12 --recipe latent8
  compare equal latent8_blocks float 0 0 "${digits[@]}" --model conv:8,R,12/2,F20 --recipe latent8
  compare near latent8_tanh float 112 48 "${digits[@]}" --model mlp:48:activation=tanh --recipe latent8
  compare near latent8_groups float 172 108 "${digits[@]}" --model mlp:108 --recipe latent8 --set weight.group=32
  compare near conv_groups float 93 12 "${digits[@]}" --model conv:8,12 --recipe latent8 --set weight.group=32
  compare near fp32 float 104 0 "${digits[@]}" --model mlp:40 --recipe fp32
  compare near fp32_conv float 71 0 "${digits[@]}" --model conv:6,M,8 --recipe fp32
  compare near master_tanh float 104 0 "${digits[@]}" --model mlp:40:norm=layer:activation=tanh --recipe master
  compare near compute_fp32 float 174 0 "${digits[@]}" --model mlp:70,40 --recipe latent8 --set 'compute="fp32"' \
    --set weight.group=64

  # Tables: seconds since 1970, which take an offset; numbers of which some are missing in the rows that are compared;
  # words, which are features of 0 and 1 whose names they give; and numbers and words of which some are missing in
  # training too, whose most frequent one (0.5 or 1700000000, and red) fills them.
  awk -v folder="$work" 'BEGIN {
    split("blue green red", words)
    for (i = 0; i < 240; ++i) {
      a = (i * 37) % 101 / 8 - 3; b = 1700000000 + (i * 7919) % 86400; word = (i * 5 + int(i / 7)) % 3 + 1
      label = a > 2 ? "high" : word == 2 ? "middle" : "low"
      print a "," b "," label > (folder "/time.csv.table")
      print a "," b > (folder "/time.csv")
      print a "," (b % 1000) / 7 "," label > (folder "/gaps.csv.table")
      print (i % 5 == 1 ? "NaN" : a) "," (i % 7 == 2 ? "NaN" : (b % 1000) / 7) > (folder "/gaps.csv")
      print a "," words[word] "," label > (folder "/words.csv.table")
      print a "," word > (folder "/words.cells")
      one_hot = (word == 1) "," (word == 2) "," (word == 3)
      print a "," one_hot > (folder "/words.csv")
      if (i % 3 == 0) { a = 0.5; b = 1700000000; word = 3 }
      one_hot = i % 11 == 3 ? "NaN,NaN,NaN" : (word == 1) "," (word == 2) "," (word == 3)
      a = i % 5 == 1 ? "" : a; b = i % 7 == 2 ? "" : b; small = b == "" ? "" : b % 1000 / 7
      print a "," b "," (i % 11 == 3 ? "" : words[word]) "," label > (folder "/mode_time.csv.table")
      print a "," small "," (i % 11 == 3 ? "" : words[word]) "," label > (folder "/mode.csv.table")
      a = a == "" ? "NaN" : a; b = b == "" ? "NaN" : b; small = small == "" ? "NaN" : small
      print a "," b "," one_hot > (folder "/mode_time.csv")
      print a "," small "," one_hot > (folder "/mode.csv")
      print a "," b "," (i % 11 == 3 ? "NaN" : word + 1) > (folder "/mode_time.cells")
      print a "," small "," (i % 11 == 3 ? "NaN" : word + 1) > (folder "/mode.cells")
    }
  }'
  for name in time gaps words mode mode_time; do
    case $name in
      time | gaps) echo "a,b,y" ;;
      words) echo "a,word,y" ;;
      mode | mode_time) echo "a,b,word,y" ;;
    esac | cat - "$work/$name.csv.table" >"$work/$name.table.csv"
  done
  table=(--model mlp:16 --recipe latent8 --epochs 5)
  rows=$work/time.csv
  compare equal time double 0 0 --data "$work/time.table.csv" "${table[@]}"
  rows=$work/gaps.csv
  compare equal gaps float 0 0 --data "$work/gaps.table.csv" "${table[@]}"
  rows=$work/words.csv cells=$work/words.cells
  compare equal words float 0 0 --data "$work/words.table.csv" "${table[@]}"
  rows=$work/mode.csv cells=$work/mode.cells
  compare equal mode float 0 0 --data "$work/mode.table.csv" --missing mode "${table[@]}"
  rows=$work/mode_time.csv cells=$work/mode_time.cells
  compare equal mode_time double 0 0 --data "$work/mode_time.table.csv" --missing mode "${table[@]}"
  cells=
}

if (($# == 1)); then
  small_networks
else
  checkpoint=$2
  rows=$3
  compare equal "$(basename -- "$2" .safetensors)" float 0 0
fi

node "$here/readers/read_onnx.mjs" "$readers" "${cases[@]}"

# The code of the document prints for each row the class that the ES module of the same model has, and its probability.
mkdir "$work/document"
ln -s -- "$readers/node_modules" "$work/document/node_modules"
cp -- "${cases[0]}/m.onnx" "${cases[0]}/rows.csv" "$work/document"
code_of "$here/../docs/EXPORT_WEB.md" js onnxruntime-node >"$work/document/classes.mjs"
(cd "$work/document" && node classes.mjs >said.txt)
"$tritgrad" export "${cases[0]}/m.safetensors" --to "$work/document/m.js" >/dev/null
mv -- "$work/document/m.js" "$work/document/m.mjs"
(cd "$work/document" && node --input-type=module -e 'import { readFileSync } from "node:fs"; import { predict } from "./m.mjs";
  const rows = readFileSync("rows.csv", "utf8").trimEnd().split("\n");
  for (const row of rows) console.log(predict(row.split(",").map(Number)).number);' >expected.txt)
[[ -s $work/document/expected.txt ]] && cut -d ' ' -f 1 "$work/document/said.txt" | cmp - "$work/document/expected.txt" || {
  echo "onnx: the code of docs/EXPORT_WEB.md prints other classes than the ES module has" >&2
  exit 1
}
echo "onnx: the code of docs/EXPORT_WEB.md runs"

/usr/bin/python3 - "${cases[@]}" <<'PYTHON'
import json
import os
import sys

import onnx

for folder in sys.argv[1:]:
    model = onnx.load(os.path.join(folder, "standard.onnx"))
    onnx.checker.check_model(model, full_check=True)
    assert {each.domain for each in model.opset_import} == {""}, folder
    assert model.producer_name == "tritgrad" and "Written by tritgrad" in model.doc_string, folder
    known = {each.key: json.loads(each.value) for each in model.metadata_props}
    tables = {each.name: each for each in model.graph.initializer}
    assert [text.decode() for text in tables["class_names"].string_data] == known["class_names"], folder
    assert len(known["class_names"]) == model.graph.output[0].type.tensor_type.shape.dim[1].dim_value, folder
    if folder.endswith("words"):
        assert known["feature_names"] == ["a", "word=blue", "word=green", "word=red"], known
    assert known.get("fill_words") == ({"word": "red"} if "/mode" in folder else None), known
print("python3-onnx accepts %d models of standard operators" % len(sys.argv[1:]))
PYTHON
