#!/usr/bin/env bash
# From a fresh clone to a result: installs what is missing, builds, and compares four ways of training
# the same network on the built-in breast-cancer data.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source tools/scripts/setup.sh

install_packages "${kBuildPackages[@]}"
install_tools npm  # `tritgrad data fetch` asks it
build release tritgrad_cli tritgrad_c  # all that `cmake --install` asks for
build/release/tritgrad compare --data wdbc --recipes fp32,master,votes,latent8 --seeds 3 \
  --report build/report.html
say "the report is in $PWD/build/report.html"
