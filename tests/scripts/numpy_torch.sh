#!/usr/bin/env bash
# The code of docs/EXPORT_PYTHON.md for NumPy and for PyTorch predicts what the C header of the same checkpoint does, whose
# logits are our own (tests/models/export/test_c_header.cpp). Then tools/scripts/time_exports.sh, in small.
# Usage: numpy_torch.sh TRITGRAD
# Exit status 77: NumPy or PyTorch is not installed.
set -euo pipefail
tritgrad=$1
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
source "$here/scripts/readers.sh"
need python3 /usr/bin/python3
need gcc cc
/usr/bin/python3 -c 'import numpy' 2>/dev/null || missing NumPy "Debian's python3-numpy"
/usr/bin/python3 -c 'import torch' 2>/dev/null || missing PyTorch "Debian's python3-torch"
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT

# Prints the logits of rows of numbers from standard input, as digits that tell floats apart.
cat >"$folder/logits.c" <<'C'
#include <stdio.h>

#include "m.h"

static m_workspace workspace;

int main(void) {
#ifdef ENCODES
  FEATURE row[M_CELLS], x[M_INPUTS];
#else
  FEATURE x[M_INPUTS], *row = x;
#endif
  float logits[M_CLASSES];
  double cell;
  int i;
  for (;;) {
    for (i = 0; i < NUMBERS; i++) {
      if (scanf("%lf%*[,]", &cell) != 1 && scanf("%lf", &cell) != 1) return i != 0;
      row[i] = (FEATURE)cell;
    }
#ifdef ENCODES
    m_encode(row, x);
#endif
    m_logits(x, logits, &workspace);
    for (i = 0; i < M_CLASSES; i++) printf(i + 1 < M_CLASSES ? "%.9g " : "%.9g\n", (double)logits[i]);
  }
}
C

# compare page|logits|classes TABLE ARGUMENT...: trains on a table with names first and the class last, or on what
# `data` names, which has the same rows.
compare() {
  local what=$1 table=$2 feature=float row=(-DNUMBERS=M_INPUTS)
  shift 2
  echo "numpy_torch: $*"
  "$tritgrad" train --data "${data-$table}" --epochs 4 --quiet --save "$folder/checkpoint.safetensors" "$@"
  for ending in h npz safetensors; do
    "$tritgrad" export "$folder/checkpoint.safetensors" --to "$folder/m.$ending" >/dev/null
  done
  tail -n +2 "$table" | sed 's/,[^,]*$//; s/^,/NaN,/; s/,,/,NaN,/; s/,$/,NaN/' >"$folder/rows.csv"
  if grep -q 'm_logits(const double' "$folder/m.h"; then feature=double; fi
  if grep -q 'm_encode(' "$folder/m.h"; then row=(-DNUMBERS=M_CELLS -DENCODES); fi
  cc -O1 -ffp-contract=off "-DFEATURE=$feature" "${row[@]}" -I "$folder" "$folder/logits.c" -o "$folder/logits" -lm
  tr '\n' ' ' <"$folder/rows.csv" | "$folder/logits" >"$folder/logits.txt"
  (cd "$folder" && /usr/bin/python3 "$here/scripts/numpy_torch.py" "$here/../docs/EXPORT_PYTHON.md" "$what")
  rm "$folder/checkpoint.safetensors"
}

digits=$(realpath -- "$here/../engine/data/digits.csv") wdbc=$here/../engine/data/wdbc.csv
for recipe in latent8 votes fp32; do
  compare page "$digits" --model mlp:32 --recipe $recipe
  compare logits "$wdbc" --model mlp:24,16 --recipe $recipe
done
{
  echo time,b,class
  for ((i = 0; i < 900; i++)); do echo "$((17000000000 + i * 7 % 900)),$((i % 11)),$((i * 7 % 900 > 400))"; done
} >"$folder/times.csv"
compare logits "$folder/times.csv" --model mlp:8 --recipe latent8
# Images of a byte a pixel, of which square roots are taken.
(cd "$folder" && /usr/bin/python3 - "$digits") <<'PYTHON'
import sys

import numpy as np

rows = np.loadtxt(sys.argv[1], delimiter=",", skiprows=1)
rows[:, :-1] *= 15
np.save("x.npy", rows[:, :-1].reshape(-1, 8, 8).astype(np.uint8))
np.save("y.npy", rows[:, -1].astype(int))
np.savetxt("bytes.csv", rows, "%d", delimiter=",", header="names", comments="")
PYTHON
data=$folder/x.npy,$folder/y.npy compare logits "$folder/bytes.csv" --model mlp:24 --recipe latent8
{
  echo time,b,class
  for ((i = 0; i < 900; i++)); do
    time=$((17000000000 + (i % 3 ? i * 7 % 900 : 5))) b=$((i % 11))
    if ((i % 5 == 1)); then time=; fi
    if ((b == 7)); then b=; fi
    echo "$time,$b,$((i * 7 % 900 > 400))"
  done
} >"$folder/filled.csv"
compare logits "$folder/filled.csv" --model mlp:8 --recipe latent8 --missing mode
compare classes "$digits" --model conv:8x8x1-6-M-8-10 --recipe latent8
compare classes "$digits" --model conv:8x8x1-6-R-8/2-F20-10 --recipe latent8
compare classes "$digits" --model mlp:32,16:norm=layer:activation=tanh --recipe votes
compare classes "$wdbc" --model mlp:20:norm=none --recipe fp32 --lr 0.01

# Bytes and times of every form, of random pixels in MNIST's place.
if command -v node >/dev/null; then
  (cd "$folder" && /usr/bin/python3 - <<'PYTHON'
import os
import pathlib
import struct

folder = pathlib.Path("data/mnist")
folder.mkdir(parents=True)
for part, rows in (("train", 200), ("t10k", 50)):
    head = struct.pack(">4I", 0x803, rows, 28, 28)
    (folder / f"{part}-images-idx3-ubyte").write_bytes(head + os.urandom(rows * 784))
    labels = bytes(row % 10 for row in range(rows))
    (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, rows) + labels)
PYTHON
  )
  export TRITGRAD_DATA=$folder/data
  "$tritgrad" train --data mnist --model mlp:16 --recipe latent8 --epochs 1 --quiet --save "$folder/mnist.safetensors"
  bash "$here/../tools/scripts/time_exports.sh" "$tritgrad" "$folder/mnist.safetensors" >"$folder/times.txt"
  for name in '.h --trits base3, compiled' '.h --trits 2bit, compiled' '.h --trits int8, compiled' .js '.npz in NumPy' \
    '.safetensors in PyTorch'; do
    grep -Eq "^$name +[1-9][0-9]+ B +[0-9.]+ ms$" "$folder/times.txt" || { cat "$folder/times.txt" && exit 1; }
  done
else
  echo "skipped: time_exports.sh, node is not installed (Debian's nodejs)"
  if [[ ${TRITGRAD_READERS-} == required ]]; then exit 1; fi
fi
