#!/usr/bin/env bash
# Exported models of regression: the values that C, Node, NumPy's arrays and onnxruntime tell of every row are the same
# doubles, and their RMSE is what 'tritgrad eval' says.
# Usage: predicted_values.sh TRITGRAD   (after onnx.sh, which installs onnxruntime; without it that part is left out)
# Exit status 77: Node or Python's NumPy is not installed.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
source "$here/scripts/readers.sh"
need nodejs node
need gcc cc
/usr/bin/python3 -c 'import numpy' 2>/dev/null || missing NumPy "Debian's python3-numpy"
tritgrad=$(realpath -- "$1")
readers=$(dirname -- "$tritgrad")/readers
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
cd -- "$folder"
echo '{"type": "module"}' >package.json  # what ends in .js is an ES module
# Without its last row the set is other data, of which all rows are scored.
head -n -1 "$here/../engine/data/diabetes.csv" >others.csv
tail -n +2 others.csv | sed 's/,[^,]*$//' >rows.csv
"$tritgrad" train --quiet --data diabetes --model mlp:32 --recipe latent8 --epochs 5 --save m.safetensors
for ending in h js npz onnx; do "$tritgrad" export m.safetensors --to "m.$ending" >/dev/null; done

cat >values.c <<'C'
#include <stdio.h>
#include "m.h"
int main(void) {
  static m_workspace workspace;
  float x[M_INPUTS];
  int i;
  for (;;) {
    for (i = 0; i < M_INPUTS; i++) {
      if (scanf(i > 0 ? ",%f" : "%f", x + i) != 1) return 0;
    }
    printf("%.17g\n", m_predict(x, &workspace));
  }
}
C
cc -std=c99 -pedantic -Wall -Wextra -Werror -O2 -ffp-contract=off values.c -o values -lm
./values <rows.csv >c.txt

node --input-type=module -e 'import { readFileSync } from "node:fs"; import { classes, predict } from "./m.js";
  if (classes.length > 0) throw new Error("a regression has no classes");
  for (const row of readFileSync("rows.csv", "utf8").trimEnd().split("\n")) {
    console.log(predict(row.split(",").map(Number)).value);
  }' >node.txt

if [[ -d $readers/node_modules/onnxruntime-node ]]; then
  ln -s -- "$readers/node_modules" node_modules
  node --input-type=module -e 'import { readFileSync } from "node:fs"; import ort from "onnxruntime-node";
    const rows = readFileSync("rows.csv", "utf8").trimEnd().split("\n").map((row) => row.split(",").map(Number));
    const session = await ort.InferenceSession.create("m.onnx");
    const x = new ort.Tensor("float32", Float32Array.from(rows.flat()), [rows.length, rows[0].length]);
    const { value } = await session.run({ [session.inputNames[0]]: x });
    console.log(Array.from(value.data).join("\n"));' >onnx.txt
fi

"$tritgrad" eval m.safetensors --data others.csv --json said.json >/dev/null
/usr/bin/python3 - <<'PYTHON'
import json
import os

import numpy

labels = numpy.loadtxt("others.csv", delimiter=",", skiprows=1)[:, -1]
values = {name: numpy.loadtxt(name + ".txt") for name in ("c", "node", "onnx") if os.path.exists(name + ".txt")}
for name, found in values.items():
    assert found.shape == labels.shape and (found == values["c"]).all(), "%s differs from c in %d of %d rows" % (
        name, (found != values["c"]).sum(), len(labels))
arrays = numpy.load("m.npz")
assert "class_names" not in arrays
assert abs(arrays["target.mean"] - labels.mean()) < 0.2 * labels.std(), arrays["target.mean"]
rmse = numpy.sqrt(numpy.mean((values["c"] - labels) ** 2))
said = json.load(open("said.json"))["test_rmse"]
# It is of standardised labels, which are rounded to fp32; a norm of errors is off by no more than the largest of them is.
mean, deviation = arrays["target.mean"], arrays["target.deviation"]
bound = deviation * 2.0 ** -24 * numpy.abs((labels - mean) / deviation).max() + 441 * 2.0 ** -53 * said
assert abs(rmse - said) <= bound, (rmse, said, bound)
print("predicted_values: %d values are equal in %s; RMSE %.2f" % (len(labels), ", ".join(values), rmse))
PYTHON
