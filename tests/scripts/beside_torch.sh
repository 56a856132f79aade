#!/usr/bin/env bash
# The comparisons with PyTorch, in small: both programs train the same networks on the same rows, and what they take is
# told. Usage: beside_torch.sh TRITGRAD
# Exit status 77: PyTorch, OpenBLAS or jemalloc is not installed.
set -euo pipefail
tritgrad=$(realpath -- "$1")
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
source "$here/scripts/readers.sh"
need util-linux taskset
need python3 /usr/bin/python3
/usr/bin/python3 -c 'import torch' 2>/dev/null || missing PyTorch "Debian's python3-torch"
compgen -G '/usr/lib/*-linux-gnu/openblas-openmp/libblas.so.3' >/dev/null ||
  missing OpenBLAS "Debian's libopenblas0-openmp"
compgen -G '/usr/lib/*-linux-gnu/libjemalloc.so.2' >/dev/null || missing jemalloc "Debian's libjemalloc2"
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
scripts=$(realpath -- "$here/../tools/scripts")

# Seconds to an accuracy, of which the script itself refuses networks with different numbers of parameters.
/usr/bin/python3 "$scripts/seconds_to_accuracy.py" --tritgrad "$tritgrad" --only digits --rounds 2 \
  --json "$folder/seconds.json" >"$folder/seconds.md"
grep -q '^| tritgrad latent8 | 32, 0.06, 8 |' "$folder/seconds.md"
"$tritgrad" train --data digits --model conv:8/2,R,M,F12 --val 0.1 --epochs 1 --quiet --json "$folder/conv.json"
cd -- "$folder"
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$scripts /usr/bin/python3 - <<'PYTHON'
import json

from torch_networks import make_network

results = json.load(open("seconds.json"))["results"]
assert [row["contender"] for row in results] == ["tritgrad latent8", "PyTorch fp32", "PyTorch ternary QAT"], results
for row in results:
    assert row["reached"] == 2 and row["processor_s"] > 0 and row["peak_rss_bytes"] > 2**20, row
    for sample in row["samples"]:
        # The end is the first epoch at the mark; the other rows agree: on 359 of them 80 % has a deviation of 2 points, of
        # which 10 are five.
        assert sample["val"][-1] >= 0.8 > max(sample["val"][:-1], default=0.0), sample
        assert sample["test"] > 0.7, sample
        assert sample.get("rows", [1294, 144, 359]) == [1294, 144, 359], sample
    assert row["samples"][0]["seed"] != row["samples"][1]["seed"]

# The same network has as many parameters, whatever the layers.
spec = "conv:8x8x1-8/2-R-M-F12-10"
count = sum(each.numel() for each in make_network(spec, "ternary QAT", 2)[0].parameters())
assert count == json.load(open("conv.json"))["parameters"], count

# Ternary training changes what the forward pass sees, with one scale a matrix, and straight through.
network, images, labels = make_network(spec, "ternary QAT", 2)
weight = next(network.parameters())
from torch_networks import ternary  # noqa: E402

values = ternary(weight)
assert len(values.detach().unique()) == 3, values
values.sum().backward()
assert (weight.grad == 1).all(), weight.grad
print("beside_torch: digits to 80 % in", ", ".join("%.2f s" % row["processor_s"] for row in results))
PYTHON

# A whole comparison of steps, in which no contender fails.
PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$scripts/bench_vs_torch.py" --rounds 1 --model 16-8-4 --batch 8 --threads 1 \
  --tritgrad "$tritgrad" --json steps.json >steps.txt
grep -q '^  tritgrad latent8  *[0-9.]*  *1.00 ' steps.txt
/usr/bin/python3 - <<'PYTHON'
import json

result = json.load(open("steps.json"))
assert result["failed"] == [] and len(result["steps"]) == 10, result
assert all(step["ms"] > 0 and step["peak_rss_bytes"] > 2**20 for step in result["steps"]), result["steps"]
assert "vs ternary QAT tuned" in [each["what"] for each in result["ratios"]], result["ratios"]
PYTHON

# Steps of convolutional networks of every kind, as bench_vs_torch.py starts them.
for kind in fp32 bf16 'ternary QAT'; do
  LD_LIBRARY_PATH=$(dirname "$(compgen -G '/usr/lib/*-linux-gnu/openblas-openmp/libblas.so.3')") OMP_NUM_THREADS=1 \
    /usr/bin/python3 "$scripts/torch_step.py" step "$kind" channels-last conv:8x8x1-8-R-16/2-M-F20-10 16 1 >step.json
  grep -q '"ms"' step.json
done
