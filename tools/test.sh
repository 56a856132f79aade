#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test: the optimised build with all checks, then the
# unit tests again for every instruction set and under the address and undefined-behaviour sanitizers.
# --extended adds clang, debug, portable, the thread sanitizer, fuzzers, clang-tidy and clang-format.
# The last line is 'N passed, N failed': test cases of the unit tests, plus checks.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source tools/scripts/setup.sh

extended=false
case ${1-} in
  '') ;;
  --extended) extended=true ;;
  *) stop "unknown argument '$1', expected nothing or --extended" ;;
esac
unset TRITGRAD_ISA

passed=0
failed=0

# count NAME PASSED FAILED: adds to the sums and says so.
count() {
  passed=$((passed + $2))
  failed=$((failed + $3))
  say "$1: $2 passed, $3 failed"
}

# Reads a JUnit file of ctest; prints how many passed and failed. A test file counts with its test
# cases; one that failed without saying how many (a crash, a leak, a time-out) counts as one failure;
# one that was skipped does not count.
count_junit() {
  awk '
    function finish() {
      if (!open) return
      open = 0
      if (skipped) return
      if (!good && bad_cases == 0) bad_cases = 1
      if (good && good_cases + bad_cases == 0) good_cases = 1
      passed += good_cases
      failed += bad_cases
    }
    /<testcase / { finish(); open = 1; good = /status="run"/; good_cases = bad_cases = skipped = 0 }
    /<skipped/ { skipped = 1 }
    /\[doctest\] test cases:/ {
      split($0, part, "|")
      good_cases += part[2]
      bad_cases += part[3]
    }
    END { finish(); print passed + 0, failed + 0 }' "$1"
}

# run_tests NAME PRESET [CTEST OPTION...]: runs and counts; shows the output of failures.
run_tests() {
  local name=$1 preset=$2 junit log status=0 good bad
  shift 2
  junit=$PWD/build/$preset/tests.xml
  log=build/$preset/tests.log
  rm -f "$junit"
  "${without_aslr[@]}" ctest --preset "$preset" --parallel "$(nproc)" --output-junit "$junit" \
    --test-output-size-passed 1000000 --test-output-size-failed 1000000 "$@" \
    >"$log" 2>&1 </dev/null || status=$?
  ((status == 0)) || cat "$log"
  if [[ -f $junit ]]; then
    sed -n 's/.*\(skipped: .*\)/\1/p' "$junit" | sort -u | while read -r line; do say "$name: $line"; done
  fi
  read -r good bad < <([[ -f $junit ]] && count_junit "$junit" || echo 0 1)
  # ctest is the judge: nothing run, or a failure that the file does not tell, is a failure.
  if ((status != 0 && bad == 0)) || ((good + bad == 0)); then bad=1; fi
  count "$name" "$good" "$bad"
}

# build_and_test PRESET [CTEST OPTION...]
build_and_test() {
  if build "$1"; then
    run_tests "$1" "$@"
  else
    count "build of $1" 0 1
  fi
}

# check NAME COMMAND...: one check that is not in ctest.
check() {
  local name=$1 log=build/check.log
  shift
  if "$@" >"$log" 2>&1 </dev/null; then
    count "$name" 1 0
  else
    cat "$log"
    count "$name" 0 1
  fi
}

sources() { find engine ops optim models tools tests \( -name "*.cpp" "$@" \) -print0; }
format() { sources -o -name "*.h" | xargs -0 clang-format --dry-run -Werror; }
tidy() {
  sources -not -path "*/consumer/*" -not -name "fuzz_*" |
    xargs -0 -n 1 -P "$(nproc)" clang-tidy -p build/clang --quiet
}

run_extended() {
  build_and_test clang
  build_and_test debug
  build_and_test portable

  # The thread sanitizer of clang 14 cannot map its shadow when addresses are randomised by more bits.
  if [[ $(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0) -gt 28 ]]; then
    without_aslr=(setarch "$(uname -m)" --addr-no-randomize)
  fi
  build_and_test tsan
  without_aslr=()

  if compgen -G 'tests/fuzz/fuzz_*.cpp' >/dev/null; then
    build_and_test fuzz
  fi

  if command -v clang-tidy >/dev/null; then
    check clang-tidy tidy
  else
    say "clang-tidy: skipped, it is not installed"
  fi
  # Other versions format otherwise.
  if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
    check clang-format format
  else
    say "clang-format: skipped, version 14 is not installed"
  fi
}

without_aslr=()
install_packages "${kBuildPackages[@]}"
# For the comparison on MNIST, which is skipped without them.
install_tools npm python3
if $extended; then install_packages "${kClangPackages[@]}"; fi

if build release; then
  run_tests release release
  # The default is the best that this machine has; with tiles, what most machines have comes after it.
  isas=(avx2 reference)
  if grep -qw amx_int8 /proc/cpuinfo; then isas=(avx512vbmi "${isas[@]}"); fi
  for isa in "${isas[@]}"; do
    TRITGRAD_ISA=$isa run_tests "release, TRITGRAD_ISA=$isa" release --label-regex unit
  done
else
  count "build of release" 0 1
fi
build_and_test asan-ubsan
if $extended; then run_extended; fi

echo "$passed passed, $failed failed"
((failed == 0))
