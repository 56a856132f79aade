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
# libblas.so.3 of a plain installation is the reference BLAS, which is many times slower.
install_packages python3-torch libopenblas0-openmp libjemalloc2
# Debian's own interpreter: others do not see Debian's packages.
/usr/bin/python3 -c 'import torch' 2>/dev/null ||
  stop "/usr/bin/python3 cannot import torch, though python3-torch is installed; see:" \
    "/usr/bin/python3 -c 'import torch'"
if [[ ! -x build/release/tritgrad ]]; then
  install_packages "${kBuildPackages[@]}"
  build release tritgrad_cli
fi
program=$PWD/build/release/tritgrad script=$PWD/tools/scripts/bench_vs_torch.py
cd -- "$caller"
exec /usr/bin/python3 "$script" --tritgrad "$program" "$@"
