#!/usr/bin/env bash
# One matrix of bits: what a short run trains is the same for 1, 2, 4 and 7 threads, on every instruction set of this machine
# where all products are in integers, whole or resumed, from the command line, C and Python, and on 1, 2 and 4 ranks where
# their sums are exact. Prints a table: a line for each network, its one hash, and the number of runs of each kind that have
# it. Runs are compared by the SHA-256 of all weights, and of moments and whatever else the optimizer keeps.
# Usage: matrix_of_bits.sh TRITGRAD LIBTRITGRAD_C
set -euo pipefail
tritgrad=$(realpath -- "$1")
TRITGRAD_LIBRARY=$(realpath -- "$2")
repository=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
export TRITGRAD_LIBRARY PYTHONPATH=$repository/tools/python OMP_WAIT_POLICY=passive
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cd -- "$work"
unset TRITGRAD_ISA

cc -o door -I "$repository/tools/c" "$repository/tests/scripts/doors/door.c" "$TRITGRAD_LIBRARY" \
  -Wl,-rpath,"$(dirname -- "$TRITGRAD_LIBRARY")"
doors=(./door)
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
  doors+=("/usr/bin/python3 -B $repository/tests/scripts/doors/door.py")
fi
isas=(reference)
for isa in avx2 avx512 avx512vnni avx512vbmi avx512amx; do
  # A set that this machine lacks is refused.
  if TRITGRAD_ISA=$isa "$tritgrad" train --data iris --model mlp:4 --epochs 1 --quiet >/dev/null 2>&1; then isas+=("$isa"); fi
done
awk 'BEGIN { for (i = 0; i < 200; i++) printf "The %d people of this union are %s. ", i % 9, i % 2 ? "free" : "one" }' >text.txt

# hash KIND FILE: adds a line to `hashes` with what the result in the file says of weights and optimizer.
hash() {
  local bits
  bits=$(grep -oE '"(weights|optimizer)_sha256": ?"[0-9a-f]*"' "$2" | sed 's/.*"\([0-9a-f]*\)"$/\1/' | sha256sum | cut -c 1-16)
  (($(grep -oE '_sha256": ?"[0-9a-f]{64}"' "$2" | wc -l) == 2)) || { echo "no hashes: $1" >&2 && exit 1; }
  echo "$bits $1" >>hashes
}

# whole_and_resumed KIND COMMAND...: a run, and one that is stopped after 5 steps and goes on.
whole_and_resumed() {
  local kind=$1
  shift
  rm -f m
  "$@" --json j --quiet
  hash "$kind" j
  "$@" --stop-after 5 --save m --quiet
  "$@" --resume m --json j --quiet
  hash "$kind resumed" j
}

# tell NAME: a line of the table, from `hashes`; fails where they differ.
tell() {
  local kinds
  kinds=$(cut -d ' ' -f 2- hashes | sed "s/ resumed$//" | sort | uniq -c |
    awk '{ n = $1; $1 = ""; printf "%s%d%s", (NR > 1 ? ", " : ""), n, $0 }')
  printf '%-42s %s  %2d runs: %s; %d of them resumed\n' "$1" "$(head -n 1 hashes | cut -d ' ' -f 1)" "$(wc -l <hashes)" \
    "$kinds" "$(grep -c resumed hashes || true)"
  if (($(cut -d ' ' -f 1 hashes | sort -u | wc -l) != 1)); then
    echo "these are not the same bits:"
    sort hashes | uniq -c
    return 1
  fi
}

# row SETS DATA MODEL RECIPE: all ways of one network; SETS are the instruction sets.
row() {
  local isa threads door
  rm -f hashes
  for isa in $1; do
    for threads in 1 2 4 7; do
      TRITGRAD_ISA=$isa whole_and_resumed "command line" "$tritgrad" train --data "$2" --model "$3" --recipe "$4" --epochs 1 \
        --batch 100 --threads $threads
    done
  done
  for door in "${doors[@]}"; do
    for threads in 1 2 4 7; do
      TRITGRAD_ISA=${1##* } OMP_NUM_THREADS=$threads $door "{\"data\": \"$2\", \"model\": \"$3\"}" \
        "{\"model\": \"$3\", \"recipe\": \"$4\", \"epochs\": 1, \"batch\": 100}" >j
      hash "$([[ $door == ./door ]] && echo C || echo Python)" j
    done
  done
  tell "$4, $3"
}

# ranks RECIPE: runs whose ranks add up whole numbers.
ranks() {
  local count threads
  rm -f hashes
  for count in 1 2 4; do
    for threads in 1 2; do
      TMPDIR=$work whole_and_resumed "on $count ranks" timeout 300 mpirun -n $count --oversubscribe --bind-to none \
        "$tritgrad" train --data digits --model mlp:32 --recipe "$1" --dp votes --micro-batches 4 --epochs 1 --batch 100 \
        --threads $threads
    done
  done
  tell "$1, mlp:32, --dp votes"
}

echo "instruction sets: ${isas[*]}; threads: 1 2 4 7"
failed=0
row "${isas[*]}" digits mlp:64,64 latent8 || failed=1
row "${isas[*]}" digits mlp:64,64 votes || failed=1
row "${isas[*]}" digits mlp:64,64 shared4 || failed=1
row "${isas[*]}" digits conv:8,M,R,12/2,F20 latent8 || failed=1
# Products in floats are those of one machine and one instruction set.
row "${isas[-1]}" digits mlp:64,64 master || failed=1
row "${isas[-1]}" digits mlp:64,64 flash-adamw || failed=1
row "${isas[-1]}" text:text.txt llama:1,32:heads=2:context=32 latent8-lm || failed=1
if mpirun --version >version 2>&1 && grep -q "Open MPI" version; then
  ranks votes || failed=1
else
  echo "ranks: skipped, Open MPI's mpirun is not installed"
fi
if ((failed)); then echo "some bits differ"; else echo "one hash for each network"; fi
exit $failed
