#!/usr/bin/env bash
# The tests of the Python package, tools/python, by pytest. Usage: python.sh TRITGRAD LIBTRITGRAD_C
# Exit status 77: pytest, NumPy or scikit-learn is not installed.
set -euo pipefail
TRITGRAD_PROGRAM=$(realpath -- "$1")
TRITGRAD_LIBRARY=$(realpath -- "$2")
export TRITGRAD_PROGRAM TRITGRAD_LIBRARY
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
source "$here/scripts/readers.sh"
need python3 /usr/bin/python3
modules=(pytest numpy sklearn)
# Tests with data frames are skipped where there are none, but not by continuous integration.
if [[ ${TRITGRAD_READERS-} == required ]]; then modules+=(pandas); fi
for module in "${modules[@]}"; do
  /usr/bin/python3 -c "import $module" 2>/dev/null || missing "$module of Python" "Debian's python3-$module"
done
cd "$here/.."
/usr/bin/python3 -m pytest --quiet -p no:cacheprovider tools/python
