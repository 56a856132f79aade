#!/usr/bin/env bash
# tools/scripts/compare_builds.py says what it should of programs whose results are known.
# Usage: compare_builds.sh
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT

# program NAME STEP_MS PASS_RATE: prints what bench would.
program() {
  cat >"$folder/$1" <<END
#!/bin/sh
echo '{"ceilings": [{"name": "fp32", "unit": "GFLOP/s", "value": $3}],
       "passes": [{"name": "p", "unit": "Mparam/s", "value": $3}],
       "steps": [{"name": "s", "unit": "ms", "value": $2}]}'
END
  chmod +x "$folder/$1"
}

# expect STATUS TEXT OLD NEW
expect() {
  local output status=0
  output=$(python3 tools/scripts/compare_builds.py "$folder/$3" "$folder/$4" --rounds 3 2>&1) || status=$?
  if ((status != $1)) || [[ $output != *"$2"* ]]; then
    printf 'compare_builds %s %s: status %s, expected %s and "%s"; it printed:\n%s\n' \
      "$3" "$4" "$status" "$1" "$2" "$output" >&2
    exit 1
  fi
}

program base 10 100
program same 10.2 99      # within the threshold of 5 %
program slow_step 12 100  # milliseconds: more is slower
program slow_rate 10 80   # a rate: less is slower
program fast 5 200
printf '#!/bin/sh\necho "unknown command" >&2\nexit 2\n' >"$folder/broken"
printf '#!/bin/sh\necho hello\n' >"$folder/chatty"
chmod +x "$folder/broken" "$folder/chatty"

expect 0 '0 of 3 slower' base base
expect 0 '0 of 3 slower' base same
expect 1 '1 of 3 slower' base slow_step
expect 1 'machine differs' base slow_rate  # the ceiling fell as well, but accuses nobody
expect 1 '1 of 3 slower' base slow_rate
expect 0 'faster' base fast
expect 2 'failed' base broken
expect 2 'something else than results' base chatty
expect 2 'cannot be run' base missing
echo 'compare_builds: 9 comparisons as expected'
