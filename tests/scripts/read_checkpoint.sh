#!/usr/bin/env bash
# Checkpoints mean to a reader that knows FORMATS.md alone what they mean to tritgrad: both find the same
# share of rows that the model knows. Usage: read_checkpoint.sh TRITGRAD. Exits with 77 without python3.
set -euo pipefail

tritgrad=$1
here=$(dirname -- "${BASH_SOURCE[0]}")
command -v python3 >/dev/null || { echo "skipped: python3 is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

# Tables for training and for testing, and images of 9 x 7 pixels: bright bars that stand or lie.
python3 - "$work" <<'PYTHON'
import math
import os
import random
import struct
import sys

draw = random.Random(1)
for name, rows in (("train", 400), ("test", 150)):
    with open(os.path.join(sys.argv[1], name + ".csv"), "w") as file:
        file.write("a,b,c,d,kind\n")
        for _ in range(rows):
            x = [draw.gauss(0.0, 1.0) for _ in range(4)]
            score = x[0] + math.sin(3.0 * x[1]) + x[2] * x[3] + 0.3 * draw.gauss(0.0, 1.0)
            kind = "low" if score < -0.5 else "high" if score > 0.7 else "middle"
            file.write(",".join("%.4f" % v for v in x) + "," + kind + "\n")

folder = os.path.join(sys.argv[1], "images")
os.mkdir(folder)
height, width = 9, 7
for name, count in (("train", 400), ("t10k", 100)):
    images, labels = bytearray(), bytearray()
    for _ in range(count):
        label, at = draw.randrange(2), draw.randrange(2, 5)
        labels.append(label)
        for line in range(height):
            for column in range(width):
                bar = (line if label else column) == at
                images.append(min(255, (120 if bar else 0) + draw.randrange(136)))
    with open(os.path.join(folder, name + "-images-idx3-ubyte"), "wb") as file:
        file.write(struct.pack(">4I", 0x803, count, height, width) + images)
    with open(os.path.join(folder, name + "-labels-idx1-ubyte"), "wb") as file:
        file.write(struct.pack(">2I", 0x801, count) + labels)
PYTHON

# compare MODEL RECIPE TRAINING TEST ROWS ARGUMENT...: accuracies differ by one row at most, as that reader
# computes in doubles and tritgrad in floats.
compare() {
  local model=$1 recipe=$2 training=$3 test=$4 rows=$5
  shift 5
  rm -f "$work/model.safetensors"
  "$tritgrad" train --data "$training" --model "$model" --recipe "$recipe" --epochs 4 --batch 25 \
    --save "$work/model.safetensors" --quiet "$@"
  "$tritgrad" eval "$work/model.safetensors" --data "$test" --json "$work/eval.json" >"$work/log"
  python3 "$here/read_checkpoint.py" "$work/model.safetensors" "$test" >"$work/reader"
  python3 - "$work" "$rows" "$model $recipe $*" <<'PYTHON'
import json
import os
import sys

ours = json.load(open(os.path.join(sys.argv[1], "eval.json")))
other, rows = float(open(os.path.join(sys.argv[1], "reader")).read()), int(sys.argv[2])
assert ours["rows"] == rows, f"{sys.argv[3]}: tritgrad tested {ours['rows']} rows, {rows} expected"
apart = abs(ours["test_accuracy"] - other) * rows
assert apart < 1.5, f"{sys.argv[3]}: {apart:.0f} rows apart: {ours['test_accuracy']} and {other}"
assert other > 0.5, f"{sys.argv[3]}: accuracy {other}, no better than guessing"
PYTHON
}

table() { compare "$1" "$2" "$work/train.csv" "$work/test.csv" 150 "${@:3}"; }
for recipe in fp32 flash-adamw master votes latent8 latent6 latent5 latent4 shared4 shared8 eco; do
  table mlp:330,12 "$recipe"
done
table mlp:330,12 eco --set weight.group=64
table mlp:40,20:norm=layer latent8
table mlp:40,20:norm=rms:activation=tanh latent8 --compute fp32
table mlp:40,20:norm=none:activation=squared_relu fp32 --lr 0.01
for recipe in latent8 fp32; do
  compare conv:6,M,8 "$recipe" "$work/images" "$work/images" 100
  compare conv:6,R,8/2,F20 "$recipe" "$work/images" "$work/images" 100
done
