#!/usr/bin/env bash
# The Python package as strangers get it: a source distribution, the wheel that pip makes of it, and that wheel in a fresh
# virtual environment, from which another folder trains. The library is the one that was just built: compiling it again
# would take minutes. What CMake reads of the source distribution is seen by configuring it.
# Usage: python_wheel.sh LIBRARY
# Exit status 77: pip, venv, setuptools, wheel or NumPy of Debian's Python is not installed.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
root=$here/..
source "$here/scripts/readers.sh"
for module in numpy setuptools wheel pip venv; do
  /usr/bin/python3 -c "import $module" 2>/dev/null || missing "Python's $module" "Debian's python3-$module"
done
/usr/bin/python3 -c "import ensurepip" 2>/dev/null || missing "Python's ensurepip" "Debian's python3-venv"
TRITGRAD_LIBRARY=$(realpath -- "$1")
export TRITGRAD_LIBRARY PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

fail() {
  echo "python_wheel: $*" >&2
  exit 1
}
# logged COMMAND...: shows what it says only where it fails.
logged() { "$@" >"$work/log" 2>&1 </dev/null || fail "$* fails: $(cat "$work/log")"; }

# A copy, because setuptools writes beside the sources.
mkdir "$work/source"
for part in pyproject.toml CMakeLists.txt CHANGELOG.md LICENSE README.md cmake engine ops optim models tools; do
  cp -R -- "$root/$part" "$work/source/"
done
cd "$work/source"
logged /usr/bin/python3 -c 'import setuptools.build_meta as build; build.build_sdist("..")'
version=$(sed -n 's/.*project(tritgrad VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
sdist=$work/tritgrad-$version.tar.gz
[[ -f $sdist ]] || fail "no tritgrad-$version.tar.gz among: $(ls "$work")"

cd "$work"
tar -xzf "$sdist"
diff -r "$work/source" "$work/tritgrad-$version" -x '*.egg-info' -x PKG-INFO -x setup.cfg -x tests -x '__pycache__' \
  >differences || fail "the source distribution is not what the repository has: $(cat differences)"
logged cmake -S "tritgrad-$version" -B configured -G Ninja -DTRITGRAD_TESTS=OFF

logged /usr/bin/python3 -m pip wheel --no-build-isolation --no-deps --no-index --wheel-dir wheels "$sdist"
wheel=wheels/tritgrad-$version-py3-none-linux_$(uname -m).whl
[[ -f $wheel ]] || fail "expected $wheel, found $(ls wheels)"
files=$(/usr/bin/python3 -m zipfile -l "$wheel") # whole, as grep -q would close the pipe on Python
grep -q '^tritgrad/libtritgrad_c\.so ' <<<"$files" || fail "no library in the wheel"

logged /usr/bin/python3 -m venv --system-site-packages environment
logged environment/bin/pip install --no-index --no-deps "$wheel"
unset TRITGRAD_LIBRARY
mkdir elsewhere
cd elsewhere
"$work/environment/bin/python" - "$version" "$work/environment" <<'PYTHON'
import sys

import tritgrad

version, environment = sys.argv[1:]
assert tritgrad.__version__ == version, tritgrad.__version__
assert tritgrad.__file__.startswith(environment), tritgrad.__file__
with open("/proc/self/maps") as maps:
    assert any(line.rstrip().endswith("/tritgrad/libtritgrad_c.so") and environment in line for line in maps)
accuracy = tritgrad.train(data="iris", recipe="latent8", epochs=30).result["test_accuracy"]
assert accuracy > 0.8, accuracy
PYTHON

# refused SENTENCE VARIABLE=VALUE...: pip stops, and says why.
refused() {
  local sentence=$1
  shift
  if env "$@" /usr/bin/python3 -m pip wheel --no-build-isolation --no-deps --no-index --wheel-dir "$work/never" \
    "$work/source" >"$work/log" 2>&1 </dev/null; then
    fail "a wheel was made with $*"
  fi
  grep -q -- "$sentence" "$work/log" || fail "with $* pip does not say '$sentence' but: $(cat "$work/log")"
}
refused "error: TRITGRAD_LIBRARY is '/none', which is no file" TRITGRAD_LIBRARY=/none
refused "error: CMake could not configure the library of tritgrad (see above); " CXX=/none
grep -q "CMAKE_CXX_COMPILER" "$work/log" || fail "what CMake says is lost: $(cat "$work/log")"
echo "python_wheel: $(basename -- "$wheel") trains in a fresh virtual environment"
