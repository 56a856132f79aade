#!/usr/bin/env bash
# Bytes and time of a network of MNIST in every form that it leaves in: processor time of a prediction on one thread, of
# the first 1,000 test images, one after the other.
# Usage: time_exports.sh TRITGRAD CHECKPOINT   (cc, node, Debian's python3-numpy and python3-torch; onnxruntime-node
# where tests/scripts/onnx.sh has put it, beside TRITGRAD)
set -euo pipefail
tritgrad=$(realpath -- "$1")
checkpoint=$(realpath -- "$2")
images=${TRITGRAD_DATA:-$HOME/.cache/tritgrad}/mnist/t10k-images-idx3-ubyte
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cd "$work"
head -c 784016 "$images" | tail -c +17 >images

# export_to FILE ARGUMENT...
export_to() {
  local file=$1
  shift
  "$tritgrad" export "$checkpoint" --to "$file" "$@" >/dev/null
}
# row NAME FILE MILLISECONDS: of 1,000 predictions.
row() { printf '%-28s %9d B  %6.2f ms\n' "$1" "$(stat -c %s "$2")" "$(awk "BEGIN { print $3 / 1000 }")"; }

cat >time.c <<'C'
#include <stdio.h>
#include <time.h>

#include "m.h"

static m_workspace workspace;

int main(void) {
  unsigned char pixels[784];
  float x[784];
  long sum = 0;
  int i;
  clock_t start = clock();
  while (fread(pixels, 784, 1, stdin) == 1) {
    for (i = 0; i < 784; i++) x[i] = pixels[i];
    sum += m_predict(x, &workspace);
  }
  printf("%.1f\n", 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC);
  return sum < 0;
}
C
for trits in base3 2bit int8; do
  export_to m.h --trits $trits
  cc -std=c99 -O2 -ffp-contract=off time.c -o time -lm
  size time | awk 'NR == 2 { print $1 + $2 }' | xargs -I{} truncate -s {} program
  row ".h --trits $trits, compiled" program "$(./time <images)"
done

cat >time.mjs <<'JS'
import fs from 'node:fs';
import { createRequire } from 'node:module';

const [kind, file, readers] = process.argv.slice(2);
const images = fs.readFileSync('images');
let predict;
if (kind === 'js') {
  const { logits } = await import(file);
  predict = (pixels) => logits(Array.from(pixels));
} else {
  const ort = createRequire(readers)('onnxruntime-node');
  const session = await ort.InferenceSession.create(file, { intraOpNumThreads: 1 });
  predict = (pixels) => session.run({ features: new ort.Tensor('float32', Float32Array.from(pixels), [1, 784]) });
}
await predict(images.subarray(0, 784));
const start = process.cpuUsage();
for (let i = 0; i < images.length; i += 784) await predict(images.subarray(i, i + 784));
console.log(process.cpuUsage(start).user / 1000);
JS
export_to m.js
cp m.js m.mjs
row .js m.js "$(node time.mjs js ./m.mjs)"
readers=$(dirname -- "$tritgrad")/readers/package.json
if [[ -f $readers ]]; then
  export_to m.onnx
  row .onnx m.onnx "$(node time.mjs onnx m.onnx "$readers")"
  export_to m.onnx --onnx-ops standard
  row ".onnx --onnx-ops standard" m.onnx "$(node time.mjs onnx m.onnx "$readers")"
fi

cat >time.py <<'PYTHON'
import json
import sys
import time

import numpy as np

images = np.fromfile("images", np.uint8).reshape(-1, 784)
if sys.argv[1] == "numpy":
    m = {name: array.astype(np.float32) if name.endswith(".trits") else array for name, array in np.load("m.npz").items()}

    def predict(x):
        x = np.float32((np.sqrt(np.float32(x)) - m["input.mean"]) * m["input.inverse_std"])
        for name in m["layers"]:
            largest = np.maximum(abs(x).max(), 1e-30)
            x = m[name + ".trits"] @ np.rint(x * (127 / largest)) * (largest / 127 * m[name + ".scales"][:, 0])
            if name != "head":
                x = (x - m[name + ".mean"]) * m[name + ".inverse_std"] * m[name + ".gain"] + m[name + ".bias"]
                x = np.maximum(x, 0)
        return x
else:
    import torch
    from torch import nn

    torch.set_num_threads(1)
    data = open("m.safetensors", "rb").read()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    about = header.pop("__metadata__")
    types = {"F32": torch.float32, "I64": torch.int64}
    state = {name: torch.frombuffer(bytearray(data[start:][slice(*t["data_offsets"])]), dtype=types[t["dtype"]])
             .reshape(t["shape"]) for name, t in header.items()}
    net = eval(about["network"])
    net.load_state_dict(state)
    net.eval()

    def rounded(module, inputs):
        scale = inputs[0].abs().amax(1, keepdim=True).clamp(min=1e-30) / 127
        return torch.round(inputs[0] / scale) * scale

    for number in json.loads(about["rounds_inputs"]):
        net[number].register_forward_pre_hook(rounded)

    @torch.no_grad()
    def predict(x):
        return net(torch.tensor(np.sqrt(np.float32(x))[None]))

predict(images[0])
began = time.process_time()
for image in images:
    predict(image)
print(1e3 * (time.process_time() - began))
PYTHON
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
export_to m.npz
row ".npz in NumPy" m.npz "$(/usr/bin/python3 time.py numpy)"
export_to m.safetensors
row ".safetensors in PyTorch" m.safetensors "$(/usr/bin/python3 time.py torch)"
