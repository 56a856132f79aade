#!/usr/bin/env bash
# Seconds from the start of a process to an accuracy, beside PyTorch's, on this machine: installs and
# builds what is missing, fetches the data sets, and compares. Arguments go to
# tools/scripts/seconds_to_accuracy.py; --help lists them.
set -euo pipefail
caller=$PWD
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
source tools/scripts/setup.sh

for argument in "$@"; do
  [[ $argument != -h && $argument != --help ]] ||
    exec python3 tools/scripts/seconds_to_accuracy.py "$@"
done
need_torch
need_program
program=$PWD/build/release/tritgrad script=$PWD/tools/scripts/seconds_to_accuracy.py
cd -- "$caller"
exec /usr/bin/python3 "$script" --tritgrad "$program" "$@"
