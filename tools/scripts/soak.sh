#!/usr/bin/env bash
# Runs that last: each of six networks trains twice at a time for its share of the minutes, with a save after every epoch
# and between, once in one long life, and once killed or interrupted at random and resumed, again and again. At the end both
# have the same checkpoint, byte for byte, and so the same weights, and no life has taken more memory than a run of a few
# epochs does.
# Usage: soak.sh MINUTES [TRITGRAD]. Without the program, build/release is built and taken.
# SOAK_SEED repeats the moments of another time. A line for each network, and one of counts; exit code 1: something failed.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
source tools/scripts/setup.sh
[[ ${1-} =~ ^[0-9]+(\.[0-9]+)?$ ]] && (($# <= 2)) || stop "usage: soak.sh MINUTES [TRITGRAD]"
if (($# == 1)); then build release tritgrad_cli; fi
tritgrad=$(realpath -- "${2-build/release/tritgrad}")
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1
RANDOM=${SOAK_SEED:=$((RANDOM * 32768 + RANDOM))}

# Data, model, recipe and options. Saves are at most a tenth of a second apart; the first has the most epochs.
networks=(
  "digits mlp:64,64 latent8 --batch 32 --save-every 20"
  "digits mlp:64,64 eco --batch 4 --save-every 200"
  "digits mlp:64,64 flash-adamw --batch 8 --save-every 100"
  "digits conv:8,M,R,12/2,F20 votes --batch 16 --save-every 50"
  "digits conv:8,M,16 latent8 --batch 16 --save-every 50"
  "text:text.txt llama:1,32:heads=2:context=32 latent8-lm --batch 4 --save-every 20"
)

# The largest resident memory may be above that of a short run by what the C library keeps at the end of its heap
# (M_TRIM_THRESHOLD, 128 KiB), and by pages of files that come in windows around those that are used (of equal runs on one
# machine by 200 KiB; twice that is allowed). An epoch adds a point to the curve: 40 bytes, three times that while their array
# grows; while it is saved or read 150 bytes of JSON, and six texts of at most 60 bytes.
kGrowthOfProgram=$(((128 + 400) * 1024))
kGrowthOfEpoch=$((3 * 40 + 150 + 6 * 60))

work=$(mktemp -d)
long="" short=""
ended=false
finish() {
  $ended || echo "tritgrad: the soak, seed $SOAK_SEED, came to no end of its own" >&2
  kill -KILL "$long" "$short" 2>/dev/null || true
  rm -rf -- "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

now() { echo $(($(date +%s%N) / 1000000)); }
begin=$(now)
share=$(awk -v minutes="$1" -v networks=${#networks[@]} 'BEGIN { printf "%d", minutes * 60000 / networks }')

kills=0
interrupts=0
all_epochs=0
failures=0
# failed WHAT...: says so, and shows what the program said.
failed() {
  failures=$((failures + 1))
  echo "FAILED: $*"
  sed 's/^/    /' said.* | tail -n 5
}

sleep_for() { sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"; }

# train NAME OPTION...: becomes the program, with files of this name.
train() {
  local name=$1
  shift
  exec "$tritgrad" train --threads 1 --quiet --json "j.$name" "$@" >>"said.$name" 2>&1 </dev/null
}

# weigh NAME PROCESS: adds a line to memory.NAME, the most resident KiB that a process had.
weigh() { awk '$1 == "VmHWM:" { print $2 }' "/proc/$2/status" 2>/dev/null >>"memory.$1" || true; }

# most NAME: of what was weighed.
most() { sort -n "memory.$1" | tail -n 1; }

# weights NAME: what the result says of the weights.
weights() { grep -o '"weights_sha256":"[0-9a-f]*"' "j.$1" | cut -d '"' -f 4; }

# trial OPTION...: a run of ten epochs, and one that goes on from it. Sets `epochs` to what a long run does in 0.6 of the time.
trial() {
  local seconds
  trial_once --save m.trial --epochs 10 "$@"
  seconds=$(grep -o '"seconds":[0-9.e-]*' j.trial | head -n 1 | cut -d : -f 2)
  epochs=$(awk -v share="$share" -v seconds="$seconds" 'BEGIN { printf "%d", share * 0.6 / 1000 / seconds * 10 }')
  if ((epochs < 10)); then epochs=10; fi
  trial_once --resume m.trial --epochs 20 "${@: -2}"
}

trial_once() {
  python3 -c 'import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)' "$tritgrad" train --threads 1 --quiet --json j.trial "$@" >>memory.trial 2>>said.trial </dev/null ||
    stop "training $* fails by itself: $(<said.trial)"
}

# live_once OPTION...: one life of the run that is killed; whether it came to its end. The last two options, how often it is
# saved, go with a resumed run, too. Where a life was too short to save anything, later ones may be longer.
live_once() {
  local code=0 signal=KILL saved
  if ((RANDOM % 8 == 0)); then signal=TERM; fi
  saved=$(stat -c %i m.short 2>/dev/null || true)
  if [[ -n $saved ]]; then train short --resume m.short "${@: -2}" & else train short --save m.short "$@" & fi
  short=$!
  sleep_for $((RANDOM % longest))
  weigh short "$short"
  if [[ -n $long ]]; then weigh long "$long"; fi
  kill "-$signal" "$short" 2>/dev/null || true
  wait "$short" 2>/dev/null || code=$?
  short=""
  lives=$((lives + 1))
  if [[ $(stat -c %i m.short 2>/dev/null || true) == "$saved" ]]; then longest=$((longest * 5 / 4)); fi
  case $code in
    0) return 0 ;;
    137) kills=$((kills + 1)) ;;
    143) interrupts=$((interrupts + 1)) ;;
    *) failed "life $lives: exit code $code" && return 0 ;;
  esac
  return 1
}

# compare_lives NAME: the same bytes, and no more memory.
compare_lives() {
  local bits who allowed
  allowed=$(($(most trial) + (kGrowthOfProgram + epochs * kGrowthOfEpoch) / 1024))
  cmp -s m.long m.short || failed "$1: other bits after $lives lives"
  bits=$(weights long)
  [[ -n $bits && $bits == "$(weights short)" ]] || failed "$1: other weights after $lives lives"
  for who in long short; do
    (($(most $who) <= allowed)) || failed "$1: a $who life took $(most $who) KiB, at most $allowed expected"
  done
  say "$1: $epochs epochs, $lives lives; weights ${bits:0:16} in both; $(most trial) KiB in 10 epochs, $(most long) in the" \
    "long life, $(most short) in the others, at most $allowed expected"
}

# soak DATA MODEL RECIPE OPTION...
soak() {
  local epochs lives=0 longest=$((share / 8 < 6000 ? share / 8 : 6000))
  local options=(--data "$1" --model "$2" --recipe "$3" "${@:4}")
  rm -f -- *.long *.short *.trial
  touch memory.long memory.short
  trial "${options[@]}"
  options=(--epochs "$epochs" "${options[@]}")
  train long --save m.long "${options[@]}" &
  long=$!
  until live_once "${options[@]}"; do :; done
  wait "$long" || failed "$3, $2: the long life: exit code $?"
  long=""
  all_epochs=$((all_epochs + epochs))
  compare_lives "$3, $2"
}

cd -- "$work"
awk 'BEGIN { for (i = 0; i < 300; i++) printf "The %d people of this union are %s. ", i % 9, i % 2 ? "free" : "one" }' >text.txt
for network in "${networks[@]}"; do
  read -ra words <<<"$network"
  soak "${words[@]}"
done
ended=true
say "soak of $((($(now) - begin) / 1000)) s, seed $SOAK_SEED: ${#networks[@]} networks, $all_epochs epochs twice, $kills kills," \
  "$interrupts interrupts; $failures failures"
((failures == 0))
