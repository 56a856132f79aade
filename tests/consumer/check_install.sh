#!/usr/bin/env bash
# Installs the library from a build folder into a new place, and builds and runs tests/consumer there
# as a stranger would: in C++ once with CMake's find_package, once with pkg-config, and in C99.
# Usage: check_install.sh BUILD_FOLDER COMPILER
set -euo pipefail

build=$1
compiler=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

cmake --install "$build" --prefix "$prefix" >"$work/install.log" || {
  cat "$work/install.log"
  exit 1
}

echo "find_package:"
cmake -S "$here" -B "$work/cmake" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$prefix" >"$work/cmake.log" && cmake --build "$work/cmake" \
  >>"$work/cmake.log" || {
  cat "$work/cmake.log"
  exit 1
}
"$work/cmake/consumer"

echo "pkg-config:"
pc=$(find "$prefix" -name tritgrad.pc)
[[ -n $pc ]] || { echo "tritgrad.pc is not installed under $prefix" >&2; exit 1; }
export PKG_CONFIG_PATH=${pc%/*}
read -ra flags <<<"$(pkg-config --cflags --libs --static tritgrad)"
"$compiler" -std=c++20 -O2 -Wall -Wextra -Werror "$here/main.cpp" "${flags[@]}" -o "$work/consumer"
"$work/consumer"

echo "C99:"
cc -std=c99 -pedantic -Wall -Wextra -Werror "$here/main.c" -o "$work/consumer" \
  $(pkg-config --cflags --libs tritgrad-c) -Wl,-rpath,"${pc%/*}/.."
(cd "$work" && ./consumer)
# Nothing but the functions of tritgrad.h can be seen of it.
others=$(nm -D --defined-only "${pc%/*}"/../libtritgrad_c.so | awk '$3 !~ /^tg_/ { print $3 }')
[[ -z $others ]] || { echo "libtritgrad_c.so shows more than tritgrad.h: $others" >&2; exit 1; }

# What a Debian package has beside it: the Python package, whole.
cmake --install "$build" --prefix "$prefix" --component debian >>"$work/install.log"
diff -r -x __pycache__ -x '*.so' "$here/../../tools/python/tritgrad" "$prefix/lib/python3/dist-packages/tritgrad"
