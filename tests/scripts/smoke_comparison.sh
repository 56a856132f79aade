#!/usr/bin/env bash
# A comparison from end to end on the first 2,000 training and 500 test images of MNIST: recipes of
# most families learn, and latent8 is where the noise of 500 test rows allows it to be beside master.
# Usage: smoke_comparison.sh TRITGRAD. Exits with 77, and one line, where MNIST cannot be had.
set -euo pipefail

tritgrad=$1
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

skip() {
  echo "skipped: $1"
  exit 77
}

# The first COUNT items of an IDX file: its magic number, the count, the other sizes, the items.
first_items() {
  local file=$1 count=$2 header=$3 item=$4
  head -c 4 "$file"
  printf "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' 0 0 $((count / 256)) $((count % 256)))"
  # Not a pipe into head: tail would die of it.
  head -c $((header + count * item)) "$file" | tail -c +9
}

command -v python3 >/dev/null || skip "python3 is not installed, which reads the result"
# What the program says itself is a reason to skip, and a network that answers too slowly; a program
# that dies is none.
code=0
mnist=$(timeout 120 "$tritgrad" data fetch mnist 2>"$work/log") || code=$?
if [ "$code" -ne 0 ]; then
  reason=$(sed -n 's/^tritgrad: //p' "$work/log" | head -n 1)
  [ "$code" -eq 1 ] && [ -n "$reason" ] && skip "MNIST is not in the cache and cannot be fetched: $reason"
  [ "$code" -eq 124 ] && skip "MNIST is not in the cache and could not be fetched within 120 seconds"
  echo "'data fetch mnist' ended with exit code $code:" >&2
  cat "$work/log" >&2
  exit 1
fi
mnist=$(tail -n 1 <<<"$mnist")

mkdir "$work/subset"
for part in "train 2000" "t10k 500"; do
  read -r name count <<<"$part"
  first_items "$mnist/$name-images-idx3-ubyte" "$count" 16 784 >"$work/subset/$name-images-idx3-ubyte"
  first_items "$mnist/$name-labels-idx1-ubyte" "$count" 8 1 >"$work/subset/$name-labels-idx1-ubyte"
done

# A cache of its own, or the runs would be those of the first time that this test ran.
"$tritgrad" compare --data "$work/subset" --model mlp:128 --epochs 8 --batch 50 --seeds 2 \
  --recipes master,fp32,flash-adamw,latent8,latent6,shared4,shared8,eco,votes --cache "$work/cache" --quiet --json "$work/result.json" \
  --report "$work/report.md"
test -s "$work/report/1-subset-pareto.svg"

python3 - "$work/result.json" <<'PYTHON'
import json
import math
import sys

comparison = json.load(open(sys.argv[1]))["comparisons"][0]
runs = comparison["runs"]
assert len(runs) == 18, f"{len(runs)} runs, expected 9 recipes x 2 seeds"
for run in runs:
    # Guessing gives 0.1; a linear classifier of as many images about 0.85; nothing that has seen
    # 2,000 images knows all of the 500.
    accuracy = run["test_accuracy"]
    assert 0.8 <= accuracy <= 0.99, f"{run['recipe']}, seed {run['seed']}: accuracy {accuracy}"

mean = {recipe["recipe"]: recipe["accuracy_mean"] for recipe in comparison["recipes"]}
# The share of right answers among n rows scatters by sqrt(p (1 - p) / n) at most, the mean of two
# seeds by 1 / sqrt(2) of that, the difference of two such means by sqrt(2) of this again: the bound
# is four times the first. Seeds share their rows, which makes the true scatter smaller.
p = mean["master"]
bound = 4.0 * math.sqrt(p * (1.0 - p) / 500.0)
distance = mean["latent8"] - p
assert abs(distance) <= bound, f"latent8 - master = {distance:+.4f}, expected within {bound:.4f}"
print(", ".join(f"{name} {100 * value:.2f} %" for name, value in mean.items()))
PYTHON
