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

# code_of DOCUMENT LANGUAGE WORD: the block of code of that language in a document that has the word in it.
code_of() {
  awk -v fence="\`\`\`$2" -v word="$3" '$0 == "```" && inside { if (index(code, word)) printf "%s", code; inside = 0 }
    inside { code = code $0 "\n" }
    $0 == fence { inside = 1; code = "" }' "$1"
}
