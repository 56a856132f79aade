# What tests of exports share: whether the program that reads them is there. To be sourced.

# missing WHAT PACKAGES: ends the test as skipped, or, where TRITGRAD_READERS=required (continuous integration, which
# installs all readers), as failed.
missing() {
  echo "skipped: $1 is not installed ($2)"
  if [[ ${TRITGRAD_READERS-} == required ]]; then exit 1; fi
  exit 77
}

# need PACKAGES COMMAND...: every command, which Debian's packages of these names bring.
need() {
  local packages=$1 tool
  shift
  for tool in "$@"; do
    command -v "$tool" >/dev/null || missing "$tool" "Debian's $packages"
  done
}
