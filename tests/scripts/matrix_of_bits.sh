#!/usr/bin/env bash
# One matrix of bits: what a short run trains is the same for 1, 2, 4 and 7 threads, on every instruction set of this machine
# where all products are in integers, from the command line, C and Python, whole or resumed on another set, with other threads
# or by another door, and on 1, 2 and 4 ranks where their sums are exact. Prints a table: a line for each network, its one
# hash, and the number of runs of each kind that have it. Runs are compared by the SHA-256 of all weights, and of moments and
# whatever else the optimizer keeps.
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
doors=("command line" C)
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
  doors+=(Python)
else
  echo "skipped: Python, as NumPy is not installed (Debian's python3-numpy)"
  if [[ ${TRITGRAD_READERS-} == required ]]; then exit 1; fi
fi

# in_use ISA: the kernels that run where that set is asked for: it, or what this machine has instead.
in_use() {
  TRITGRAD_ISA=$1 "$tritgrad" bench --only steps --model mlp:4-4 --recipe votes --batch 1 --threads 1 --rounds 1 --json - |
    sed -n 's/.*"isa": "\(.*\)".*/\1/p'
}
isas=() left_out=()
for isa in reference avx2 avx512 avx512vnni avx512vbmi avx512amx; do
  if [[ $(in_use $isa) == "$isa" ]]; then isas+=("$isa"); else left_out+=("$isa"); fi
done
counts=(1 2 4 7)
awk 'BEGIN { for (i = 0; i < 800; i++) printf "The %d people of this union are %s. ", i % 9, i % 2 ? "free" : "one" }' >text.txt

# hash KIND FILE: adds a line to `hashes` with what the result in the file says of weights and optimizer.
hash() {
  local bits
  bits=$(grep -oE '"(weights|optimizer)_sha256": ?"[0-9a-f]*"' "$2" | sed 's/.*"\([0-9a-f]*\)"$/\1/' | sha256sum | cut -c 1-16)
  (($(grep -oE '_sha256": ?"[0-9a-f]{64}"' "$2" | wc -l) == 2)) || { echo "no hashes: $1" >&2 && exit 1; }
  echo "$bits $1" >>hashes
}

# half_done: whether the result in j is that of a first half.
half_done() { grep -q '"steps":5,' j || { echo "a run that was to end after 5 steps did not" >&2 && exit 1; }; }

# train DOOR ISA THREADS PART DATA MODEL RECIPE: a run by that door: `whole`, the first `half` of it, which ends after 5 steps
# and is saved as m, or the `rest`, which goes on from there. The result is in j.
train() {
  local more=()
  if [[ $1 == "command line" ]]; then
    case $4 in
      half) more=(--stop-after 5 --save m) ;;
      rest) more=(--resume m) ;;
    esac
    TRITGRAD_ISA=$2 "$tritgrad" train --data "$5" --model "$6" --recipe "$7" --epochs 1 --batch 100 --threads "$3" \
      --json j --quiet "${more[@]}"
    return
  fi
  case $4 in
    half) more=(', "stop_after": 5, "save": "m"') ;;
    rest) more=(', "resume": "m"') ;;
  esac
  local door=(./door)
  if [[ $1 == Python ]]; then door=(/usr/bin/python3 -B "$repository/tests/scripts/doors/door.py"); fi
  TRITGRAD_ISA=$2 OMP_NUM_THREADS=$3 "${door[@]}" "{\"data\": \"$5\", \"model\": \"$6\"}" \
    "{\"model\": \"$6\", \"recipe\": \"$7\", \"epochs\": 1, \"batch\": 100${more[*]}}" >j
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

# row "ISA..." DATA MODEL RECIPE: all ways of one network. By the command line a run of its own for each set and number of
# threads, by the other doors for each number, on the last set. What goes on from a half does so on the next set, with the
# next number of threads; and by the next door.
row() {
  local sets door i j next
  read -ra sets <<<"$1"
  shift
  rm -f hashes
  for ((i = 0; i < ${#sets[@]}; ++i)); do
    for ((j = 0; j < ${#counts[@]}; ++j)); do
      train "command line" "${sets[i]}" "${counts[j]}" whole "$@"
      hash "command line" j
      rm -f m
      train "command line" "${sets[i]}" "${counts[j]}" half "$@"
      half_done
      train "command line" "${sets[(i + 1) % ${#sets[@]}]}" "${counts[(j + 1) % ${#counts[@]}]}" rest "$@"
      hash "command line resumed" j
    done
  done
  for ((i = 0; i < ${#doors[@]}; ++i)); do
    door=${doors[i]} next=${doors[(i + 1) % ${#doors[@]}]}
    for ((j = 0; j < ${#counts[@]}; ++j)); do
      if ((i > 0)); then
        train "$door" "${sets[-1]}" "${counts[j]}" whole "$@"
        hash "$door" j
      fi
      rm -f m
      train "$door" "${sets[0]}" "${counts[j]}" half "$@"
      half_done
      train "$next" "${sets[-1]}" "${counts[(j + 1) % ${#counts[@]}]}" rest "$@"
      hash "$next resumed" j
    done
  done
  tell "$3, $2"
}

# ranks RECIPE: runs whose ranks add up whole numbers; what goes on from a half does so with another number of threads.
ranks() {
  local count threads job
  rm -f hashes
  for count in 1 2 4; do
    for threads in 1 2; do
      job=(timeout 300 mpirun -n "$count" --oversubscribe --bind-to none "$tritgrad" train --data digits --model mlp:32
        --recipe "$1" --dp votes --micro-batches 4 --epochs 1 --batch 100 --quiet)
      rm -f m
      TMPDIR=$work "${job[@]}" --threads $threads --json j
      hash "on $count ranks" j
      TMPDIR=$work "${job[@]}" --threads $threads --stop-after 5 --save m --json j
      half_done
      TMPDIR=$work "${job[@]}" --threads $((3 - threads)) --resume m --json j
      hash "on $count ranks resumed" j
    done
  done
  tell "$1, mlp:32, --dp votes"
}

echo "instruction sets: ${isas[*]}; left out, as this machine lacks them: ${left_out[*]:-none}; threads: ${counts[*]}"
failed=0
row "${isas[*]}" digits mlp:64,64 latent8 || failed=1
row "${isas[*]}" digits mlp:64,64 votes || failed=1
row "${isas[*]}" digits mlp:64,64 shared4 || failed=1
row "${isas[*]}" digits conv:8,M,R,12/2,F20 latent8 || failed=1
# Without blocks and strides images are in int8 between the layers.
row "${isas[*]}" digits conv:8,M,16 latent8 || failed=1
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
