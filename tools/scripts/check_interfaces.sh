#!/usr/bin/env bash
# The two interfaces that grow most easily stay small: everybody who writes a format or a rule reads them whole.
# Counts the public functions of Storage, overloads included, and the virtual ones of Rule.
# Usage: check_interfaces.sh [REPOSITORY]
set -euo pipefail
cd -- "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}"

# members CLASS: the lines that declare members of a class, as PART LINE with the part of its access.
members() {
  local header
  header=$(grep -rlE "^class $1( final)?( :.*)? \{" engine optim --include='*.h') || {
    echo "class $1 is declared in no header of engine and optim" >&2
    exit 1
  }
  awk -v class="$1" '
    $0 ~ "^class " class "( final)?( :.*)? \\{" { open = 1; part = "private"; next }
    open && /^\};/ { exit }
    open && /^ (public|protected|private):/ { part = $1; sub(/:/, "", part); next }
    open && /^  [^ }\/]/ { print part, $0 }' "$header"
}

failed=0
# at_most CLASS LIMIT WHAT COUNT
at_most() {
  echo "$1: $4 $3, at most $2"
  (($4 <= $2)) || failed=1
}
# Constructors and operators build and copy; they are no verbs.
functions=$(members Storage | grep '^public .*(' | grep -vcE '^public +(explicit )?~?Storage\(|operator|^public +(using|struct|class|enum|friend) ') || true
at_most Storage 14 "public functions" "$functions"
virtuals=$(members Rule | grep '^[a-z]* *virtual ' | grep -vc '~') || true
at_most Rule 10 "virtual functions" "$virtuals"
exit "$failed"
