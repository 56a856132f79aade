#!/usr/bin/env bash
# Installs the Debian package by apt, trains with it by the program, from Python and from C, and removes it again.
# For a system that may be changed: bare_debian.sh --package makes one. Usage, as root: try_package.sh FILE.deb
set -euo pipefail
deb=$(realpath -- "$1")
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
source tools/scripts/setup.sh
program=$PWD/tests/consumer/main.c
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

install_packages "$deb" python3-numpy
cd "$work"
tritgrad train --data iris --recipe latent8 --epochs 30 --save m.safetensors --json run.json --quiet
tritgrad eval m.safetensors
/usr/bin/python3 - <<'PYTHON'
import json

import tritgrad

here = tritgrad.train(data="iris", recipe="latent8", epochs=30).result
with open("run.json") as file:
    there = json.load(file)
assert here["test_accuracy"] > 0.8, here["test_accuracy"]
assert here["weights_sha256"] == there["weights_sha256"], "Python and the program train other bits"
PYTHON

zgrep -q '^\.SH EXAMPLES' /usr/share/man/man1/tritgrad.1.gz || stop "the manual page lacks the examples of --help"

install_packages gcc libc6-dev pkg-config
read -ra flags <<<"$(pkg-config --cflags --libs tritgrad-c)"
gcc -std=c99 "$program" "${flags[@]}" -o trains
./trains

apt-get remove -qq -y tritgrad >remove.log 2>&1 || stop "apt-get could not remove tritgrad: $(cat remove.log)"
left=$(find /usr/lib/python3/dist-packages/tritgrad /usr/include/tritgrad /usr/bin/tritgrad \
  /usr/share/man/man1/tritgrad.1.gz 2>/dev/null) || true
[[ -z $left ]] || stop "tritgrad is removed, but these are left: $left"
say "$(basename -- "$deb") trains by the program, from Python and from C, and leaves nothing"
