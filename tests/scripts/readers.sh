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

# install_with_npm FOLDER TARGET NAME: installs what the lock file in FOLDER says, of which NAME is the reader, unless it is
# there already. TARGET is beside the program, in the build folder.
install_with_npm() {
  local folder=$1 target=$2 name=$3
  if cmp -s "$folder/package-lock.json" "$target/installed.json"; then return; fi
  mkdir -p "$target"
  cp -- "$folder/package.json" "$folder/package-lock.json" "$target"
  (cd "$target" && npm ci --ignore-scripts --no-audit --no-fund) >"$target/npm.log" 2>&1 ||
    missing "$name" "npm ci of ${folder#"$here/../"} failed, see $target/npm.log"
  cp -- "$folder/package-lock.json" "$target/installed.json"
}

# code_of DOCUMENT LANGUAGE WORD: the block of code of that language in a document that has the word in it.
code_of() {
  awk -v fence="\`\`\`$2" -v word="$3" '$0 == "```" && inside { if (index(code, word)) printf "%s", code; inside = 0 }
    inside { code = code $0 "\n" }
    $0 == fence { inside = 1; code = "" }' "$1"
}
