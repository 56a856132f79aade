#!/usr/bin/env bash
# Makes the Debian package for the Debian or Ubuntu that it runs on, build/release/tritgrad_VERSION_ARCHITECTURE.deb:
# installs what is missing, builds what is not built.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
source tools/scripts/setup.sh

# By the first two CPack finds what the package depends on; the third makes the manual page.
install_packages "${kBuildPackages[@]}" dpkg-dev file help2man
build release tritgrad tritgrad_cli tritgrad_c
rm -f build/release/tritgrad_*.deb
log=build/release/package.log
(cd build/release && cpack -G DEB) >"$log" 2>&1 || {
  cat "$log" >&2
  stop "cpack could not make the package (see above)"
}
deb=$(echo "$PWD"/build/release/tritgrad_*.deb)
say "the package is $deb; apt-get install $deb"
