#!/usr/bin/env bash
# What RELIABILITY.md promises, tried by force: runs are killed at random, and every call on a file in turn fails or is the
# last of its process; disks are full or read-only, files damaged, runs concurrent, ranks killed and stopped. Every recipe,
# perceptrons, convolutional networks and language models, and the command line, C and Python take part. After each blow: what
# was saved is whole, the work goes on from it, and ends with the bits of a run that nothing happened to; refusals are one line.
# Usage: torture.sh MINUTES [TRITGRAD LIBTRITGRAD_C]. Without the program, build/release is built and taken.
# TORTURE_SEED repeats the choices of another time. The last line has the counts, of calls on files how many of all that there
# are, and what could not be tried; exit code 1: something failed, a part has tried nothing, or, with
# TRITGRAD_READERS=required, Python or ranks are missing.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
source tools/scripts/setup.sh
[[ ${1-} =~ ^[0-9]+(\.[0-9]+)?$ && ($# == 1 || $# == 3) ]] || stop "usage: torture.sh MINUTES [TRITGRAD LIBTRITGRAD_C]"
if (($# == 1)); then build release tritgrad_cli tritgrad_c; fi
tritgrad=$(realpath -- "${2-build/release/tritgrad}")
library=$(realpath -- "${3-build/release/libtritgrad_c.so}")
repository=$PWD
RANDOM=${TORTURE_SEED:=$((RANDOM * 32768 + RANDOM))}

work=$(mktemp -d)
desk=$work
processors=$(nproc)
job="" workers=()
: >"$work/failures"
ended=false
finish() {
  $ended || echo "tritgrad: the torture, seed $TORTURE_SEED, came to no end of its own" >&2
  if [[ -n $job ]]; then kill -KILL -- "-$job" 2>/dev/null || true; fi
  if ((${#workers[@]})); then kill "${workers[@]}" 2>/dev/null || true; fi
  umount "$work/disk" 2>/dev/null || true
  rm -rf -- "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

# Each part has a share of the time, in thousandths of a second, and does something, however long what came before it took.
now() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }
begin=$(now)
total=$(awk -v minutes="$1" 'BEGIN { printf "%d", minutes * 60000 }')
until_share() { ((${EPOCHREALTIME/[.,]/} / 1000 - begin < total * $1 / 100)); }
has_turn() { ((count[$1] == 0)) || until_share "$2"; }

declare -A count=([kills]=0 [faults]=0 [cases]=0 [disks]=0 [damages]=0 [concurrent]=0 [ranks]=0)
skipped=()
# failed WHAT...: says so, and shows what the program said.
failed() {
  echo "$*" >>"$work/failures"
  echo "FAILED: $*"
  sed 's/^/    /' "$desk/said" 2>/dev/null | head -n 5
}

# lack WHAT WHY: it cannot be tried.
lack() {
  skipped+=("$1, $2")
  if [[ ${TRITGRAD_READERS-} == required ]]; then failed "$1: $2"; fi
}

source tests/scripts/torture/prepare.sh
source tests/scripts/torture/kills.sh
source tests/scripts/torture/faults.sh
source tests/scripts/torture/disks.sh
source tests/scripts/torture/damages.sh
source tests/scripts/torture/concurrent.sh
source tests/scripts/torture/ranks.sh

prepare
kill_at_random 12
fault_every_call 65
fill_disks
damage_files 78
run_concurrently 88
kill_ranks 100

for part in "${!count[@]}"; do
  if ((count[$part] == 0)) && [[ "${skipped[*]}" != *"$part, "* ]]; then failed "nothing was tried of: $part"; fi
done
failures=$(wc -l <"$work/failures")
not_tried=""
for each in "${skipped[@]}"; do not_tried+=" skipped: $each;"; done
ended=true
say "torture of $((($(now) - begin) / 1000)) s, seed $TORTURE_SEED: ${count[kills]} kills at random," \
  "${count[faults]} of ${count[cases]} kills and errors at calls on files, ${count[disks]} full and read-only disks," \
  "${count[damages]} damaged files, ${count[concurrent]} concurrent runs, ${count[ranks]} jobs with a rank killed or" \
  "stopped;$not_tried $failures failures"
((failures == 0))
