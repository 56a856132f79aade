#!/usr/bin/env bash
# What RELIABILITY.md promises, tried by force: runs are killed at random, and every call on a file in turn fails or is the
# last of its process; disks are full or read-only, files damaged, runs concurrent, ranks killed and stopped. Every recipe,
# and the command line, C and Python take part. After each blow: what was saved is whole, the work goes on from it, and ends
# with the bits of a run that nothing happened to; refusals are one line.
# Usage: torture.sh MINUTES [TRITGRAD LIBTRITGRAD_C]. Without the program, build/release is built and taken.
# TORTURE_SEED repeats the choices of another time. The last line has the counts; exit code 1: something failed.
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
job=""
ended=false
finish() {
  $ended || echo "tritgrad: the torture, seed $TORTURE_SEED, came to no end of its own" >&2
  if [[ -n $job ]]; then kill -KILL -- "-$job" 2>/dev/null || true; fi
  umount "$work/disk" 2>/dev/null || true
  rm -rf -- "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

# Each part has a share of the time, in thousandths of a second.
now() { echo $(($(date +%s%N) / 1000000)); }
begin=$(now)
total=$(awk -v minutes="$1" 'BEGIN { printf "%d", minutes * 60000 }')
until_share() { (($(now) - begin < total * $1 / 100)); }

declare -A count=([kills]=0 [faults]=0 [disks]=0 [damages]=0 [concurrent]=0 [ranks]=0)
failures=0
# failed WHAT...: says so, and shows what the program said.
failed() {
  failures=$((failures + 1))
  echo "FAILED: $*"
  sed 's/^/    /' "$work/said" 2>/dev/null | head -n 5
}

source tests/scripts/torture/prepare.sh
source tests/scripts/torture/kills.sh
source tests/scripts/torture/faults.sh
source tests/scripts/torture/disks.sh
source tests/scripts/torture/damages.sh
source tests/scripts/torture/concurrent.sh
source tests/scripts/torture/ranks.sh

prepare
kill_at_random 20
fault_every_call 60
fill_disks
damage_files 75
run_concurrently 85
kill_ranks 100

ended=true
say "torture of $((($(now) - begin) / 1000)) s, seed $TORTURE_SEED: ${count[kills]} kills at random," \
  "${count[faults]} kills and errors at calls on files, ${count[disks]} full and read-only disks," \
  "${count[damages]} damaged files, ${count[concurrent]} concurrent runs, ${count[ranks]} jobs with a rank killed or" \
  "stopped; $failures failures"
((failures == 0))
