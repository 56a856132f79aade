#!/usr/bin/env bash
# Real ranks: the same votes on 1, 2 and 4 of them, also where a run is resumed, and what becomes of a
# job with a rank that dies, stops, or does something else than the others.
# Usage: mpi.sh TRITGRAD. Exits with 77, and one line, where there is no MPI.
set -euo pipefail

tritgrad=$1
work=$(mktemp -d)
# Jobs that end remove the folder that others of this user begin in, unless each has its own.
export TMPDIR=$work
mkdir "$work/never"
never_met=""
trap 'kill $never_met 2>/dev/null || true; rm -rf -- "$work"' EXIT

command -v mpirun >/dev/null || {
  echo "skipped: mpirun is not installed (openmpi-bin)"
  exit 77
}
if ! mpirun --version 2>/dev/null | grep -q "Open MPI"; then
  echo "skipped: mpirun is not Open MPI's"
  exit 77
fi
# Containers and continuous integration often run as root.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

fail() {
  echo "$*" >&2
  exit 1
}

# The end, in seconds, of a job that neither ends nor is noticed. A busy machine takes its time to start ranks.
patience=300

# ranks N ARGUMENT...: a job of N ranks.
ranks() {
  local count=$1
  shift
  timeout "$patience" mpirun -n "$count" --oversubscribe --bind-to none "$tritgrad" train "$@" --threads 1
}

# bash "$work/each" COMMAND / OTHER: what rank 0 does, and rank 1. ("mpirun COMMAND : OTHER" crashes in Open MPI 5.0.7.)
cat >"$work/each" <<'END'
command=()
for word in "$@"; do
  if [[ $word != / ]]; then
    command+=("$word")
  elif ((OMPI_COMM_WORLD_RANK == 0)); then
    break
  else
    command=()
  fi
done
exec "${command[@]}"
END

digits=(--data digits --model mlp:32,32 --epochs 2 --micro-batches 4)
for count in 1 2 4; do
  ranks $count "${digits[@]}" --recipe votes --dp votes --json - >"$work/votes$count.json" \
    2>"$work/log" || fail "votes on $count ranks: $(cat "$work/log")"
  grep -o '"weights_sha256":"[0-9a-f]*"' "$work/votes$count.json" >>"$work/hashes"
done
(($(wc -l <"$work/hashes") == 3)) || fail "there are not three results"
(($(sort -u "$work/hashes" | wc -l) == 1)) || fail "votes differ: $(cat "$work/hashes")"

ranks 2 "${digits[@]}" --recipe fp32 --dp apmsqueeze --json "$work/squeezed.json" --quiet \
  >"$work/out" 2>"$work/log" || fail "apmsqueeze: $(cat "$work/log")"
grep -q '"method":"apmsqueeze","ranks":2' "$work/squeezed.json" || fail "no traffic in the result"

# Another seed on the second rank.
if timeout "$patience" mpirun -n 2 --oversubscribe --bind-to none bash "$work/each" \
  "$tritgrad" train "${digits[@]}" --recipe votes --dp votes --seed 1 --quiet / \
  "$tritgrad" train "${digits[@]}" --recipe votes --dp votes --seed 2 --quiet \
  >"$work/out" 2>&1; then
  fail "ranks with different seeds trained"
fi
grep -q "rank 1 has another seed" "$work/out" || fail "the seed is not named: $(cat "$work/out")"

# Several ranks that were not told how to work together.
if ranks 2 --data digits >"$work/out" 2>&1; then fail "two ranks trained the same"; fi
grep -q "choose how they work together: --dp" "$work/out" || fail "no advice: $(cat "$work/out")"

# said SENTENCE FILE: one line of what ranks wrote has it.
said() {
  grep -qE "^tritgrad: (rank [0-9]+: )?.*$1" "$2" || fail "'$1' is not said: $(cat "$2")"
}

# refused SENTENCE COMMAND...: ends in failure, and says so in one line of each rank.
refused() {
  local sentence=$1
  shift
  if timeout "$patience" "$@" >"$work/out" 2>&1; then fail "not refused: $*"; fi
  said "$sentence" "$work/out"
}
mpi=(mpirun --oversubscribe --bind-to none)
short=("$tritgrad" train --data iris --model mlp:8 --recipe votes --threads 1 --quiet)

# A rank that stops before it meets the others, who wait a minute whatever --dp-timeout says; the result is
# looked at last.
# shellcheck disable=SC2016
TMPDIR=$work/never timeout "$patience" "${mpi[@]}" -n 2 bash "$work/each" "${short[@]}" --dp votes --dp-timeout 2 / \
  bash -c 'kill -STOP $$; exec "$@"' stopped "${short[@]}" --dp votes --dp-timeout 2 \
  >"$work/never_met" 2>&1 &
never_met=$!

# Resumed on any number of ranks; parts that nobody chose are those that the run began with.
"${mpi[@]}" -n 2 "${short[@]}" --dp votes --epochs 2 --save "$work/two.safetensors"
"${short[@]}" --dp votes --epochs 2 --save "$work/one.safetensors"
for begun in one two; do
  for count in 1 3 4; do
    ranks $count --resume "$work/$begun.safetensors" --epochs 4 --save "$work/again.safetensors" \
      --json - >"$work/resumed.json" 2>"$work/log" ||
      fail "a run of $begun resumed on $count ranks: $(cat "$work/log")"
    grep -o '"weights_sha256":"[0-9a-f]*"' "$work/resumed.json" >>"$work/resumed_$begun"
  done
  (($(wc -l <"$work/resumed_$begun") == 3 && $(sort -u "$work/resumed_$begun" | wc -l) == 1)) ||
    fail "resumed votes differ: $(cat "$work/resumed_$begun")"
done
refused "2 ranks need a part each" "${mpi[@]}" -n 2 "${short[@]}" --dp votes --micro-batches 1
refused "4 ranks need a part of two rows each; give 8" \
  "${mpi[@]}" -n 4 "${short[@]}" --dp votes --batch 4

# Ranks that resume from different checkpoints, or have other options.
"${short[@]}" --dp votes --epochs 2 --stop-after 3 --micro-batches 2 --save "$work/early.safetensors"
refused "another step in its checkpoint .*'3', expected '8'" \
  "${mpi[@]}" -n 2 bash "$work/each" "$tritgrad" train --resume "$work/two.safetensors" --epochs 3 / \
  "$tritgrad" train --resume "$work/early.safetensors" --epochs 3
refused "another batch \(--batch\) than rank 0: '64', expected '32'" \
  "${mpi[@]}" -n 2 bash "$work/each" "${short[@]}" --dp votes --batch 32 / "${short[@]}" --dp votes --batch 64

# Ranks that name other outputs, of which the first rank alone would write its own.
for option in --save --json --log; do
  refused "another name for its [a-z]* \($option\) than rank 0: '$work/b', expected '$work/a'" \
    "${mpi[@]}" -n 2 bash "$work/each" "${short[@]}" --dp votes $option "$work/a" / \
    "${short[@]}" --dp votes $option "$work/b"
  [[ ! -e $work/a && ! -e $work/b ]] || fail "$option was written by ranks that did not agree"
done

# Another launcher's ranks, and commands that would all do the same.
refused "finds 1 of them" env PMI_SIZE=2 PMI_RANK=1 "${short[@]}" --dp votes
refused "Slurm has started 3 processes" env SLURM_STEP_NUM_TASKS=3 "${short[@]}" --dp votes
refused "start 'compare' without mpirun" "${mpi[@]}" -n 2 "$tritgrad" compare

# One that never leaves: what it writes to has no reader.
mkfifo "$work/pipe"
refused "has waited 2 s for another rank to end" \
  "${mpi[@]}" -n 2 "${short[@]}" --dp votes --dp-timeout 2 --json "$work/pipe"

# The script that compares APMSqueeze with all-reduce, on ranks as above.
if command -v python3 >/dev/null; then
  sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
  timeout "$patience" python3 "$sources/tools/scripts/claim_of_apmsqueeze.py" "$tritgrad" --seeds 2 --recipe fp32 \
    --launcher "mpirun -n 2 --oversubscribe --bind-to none" \
    -- --data digits --model mlp:16 --epochs 3 --threads 1 >"$work/claim" 2>"$work/log" ||
    fail "claim_of_apmsqueeze.py: $(cat "$work/log")"
  # Both methods, in the table of scores and in that of losses; the second sends less in its last step.
  [[ $(grep -c '^| `allreduce` |' "$work/claim") == 2 && $(grep -c '^| `apmsqueeze` |' "$work/claim") == 2 ]] ||
    fail "claim_of_apmsqueeze.py printed: $(cat "$work/claim")"
  awk -F'|' '/`allreduce`/ && !all { gsub(",", ""); all = $7 }
             /`apmsqueeze`/ && !apm { gsub(",", ""); apm = $7 }
             END { exit !(apm > 0 && apm < all / 10) }' "$work/claim" ||
    fail "apmsqueeze does not send a tenth of allreduce: $(cat "$work/claim")"
fi

# job SIGNAL: a long job, one rank of which gets a signal in its midst. Sets `seconds` from the
# signal to the end, and leaves what was said in $work/out.
job() {
  local signal=$1
  timeout "$patience" mpirun -n 2 --oversubscribe --bind-to none "$tritgrad" train --data digits \
    --recipe votes --dp votes --epochs 1000000 --threads 1 --quiet --dp-timeout 3 \
    --save "$work/job.safetensors" >"$work/out" 2>&1 &
  local job=$! victim="" tries
  for ((tries = 0; tries < 10 * patience; ++tries)); do
    [[ -s $work/job.safetensors ]] && break
    sleep 0.1
  done
  [[ -s $work/job.safetensors ]] || fail "the job did not begin: $(cat "$work/out")"
  # The second rank of the job is the youngest of its processes.
  victim=$(pgrep -n -f -- "--save $work/job.safetensors")
  local start=$SECONDS
  kill -"$signal" "$victim"
  if wait "$job"; then fail "a job with a rank that got $signal ended well"; fi
  seconds=$((SECONDS - start))
  kill -KILL "$victim" 2>/dev/null || true
  rm "$work/job.safetensors"
}

job KILL
((seconds <= 10)) || fail "the job went on for $seconds s without the rank that was killed"
# The sentence may be broken into lines.
tr "\n" " " <"$work/out" | grep -E "process rank [01] .* exited on +signal 9" >/dev/null ||
  fail "the rank that died is not named: $(cat "$work/out")"

job STOP
((seconds <= 10)) || fail "a rank that stopped was noticed after $seconds s, 3 s were allowed"
grep -qE "has waited 3 s for rank [01]" "$work/out" ||
  fail "the rank that stopped is not named: $(cat "$work/out")"

if wait "$never_met"; then fail "a job began without a rank that was stopped"; fi
said "has waited 60 s for another rank to begin" "$work/never_met"
echo "votes on 1, 2 and 4 ranks agree; dead, stopped and different ranks are noticed"
