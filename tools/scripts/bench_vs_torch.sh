#!/usr/bin/env bash
# Whole training steps beside PyTorch's, on this machine: installs Debian's PyTorch with OpenBLAS and
# jemalloc where they are missing, builds what is missing, and compares. Arguments go to
# tools/scripts/bench_vs_torch.py; --help lists them.
set -euo pipefail
caller=$PWD
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
source tools/scripts/setup.sh

for argument in "$@"; do
  [[ $argument != -h && $argument != --help ]] || exec python3 tools/scripts/bench_vs_torch.py "$@"
done
need_torch
need_program
program=$PWD/build/release/tritgrad script=$PWD/tools/scripts/bench_vs_torch.py
cd -- "$caller"
exec /usr/bin/python3 "$script" --tritgrad "$program" "$@"
