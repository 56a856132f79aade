#!/usr/bin/env bash
# The Python package as docs/PYTHON.md installs it, compiled by pip: from a copy of the repository, in a fresh virtual
# environment, imported and fitted from another folder. It compiles the whole library, which takes minutes, so that it
# belongs to tools/test.sh --extended; python_wheel.sh packs the library that was just built.
# Exit status 77: scikit-learn, pip, venv, setuptools or wheel of Debian's Python is not installed.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
source "$here/scripts/readers.sh"
for module in sklearn setuptools wheel pip ensurepip; do
  /usr/bin/python3 -c "import $module" 2>/dev/null ||
    missing "Python's $module" "Debian's python3-sklearn python3-setuptools python3-wheel python3-pip python3-venv"
done
unset TRITGRAD_LIBRARY
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_INDEX=1  # Debian's packages are all that it needs
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
mkdir "$work/source" "$work/elsewhere"
for part in pyproject.toml CMakeLists.txt CHANGELOG.md LICENSE README.md cmake engine ops optim models tools; do
  cp -R -- "$here/../$part" "$work/source/"
done
find "$work/source" \( -name '*.so' -o -name __pycache__ \) -prune -exec rm -rf -- {} +

cd "$work/source"
begin=$SECONDS
if ! (/usr/bin/python3 -m venv --system-site-packages v && v/bin/pip install --no-build-isolation .) \
  >"$work/log" 2>&1 </dev/null; then
  echo "python_install: pip install fails: $(cat "$work/log")" >&2
  exit 1
fi
seconds=$((SECONDS - begin))
cd "$work/elsewhere"
"$work/source/v/bin/python" - "$work/source/v" <<'PYTHON'
import sys

import tritgrad
from sklearn.datasets import load_iris
from tritgrad import TernaryClassifier

assert tritgrad.__file__.startswith(sys.argv[1]), tritgrad.__file__
with open("/proc/self/maps") as maps:
    loaded = {line.split()[-1] for line in maps if "libtritgrad_c" in line}
assert len(loaded) == 1 and loaded.pop().startswith(sys.argv[1]), loaded
X, y = load_iris(return_X_y=True)
score = TernaryClassifier(random_state=1).fit(X, y).score(X, y)
assert score > 0.9, score
PYTHON
echo "python_install: compiled and installed in $seconds s, and fits iris"
