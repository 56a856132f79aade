#!/usr/bin/env bash
# This repository on a bare machine: debootstrap's minimal base of another Debian with git, and a clone (what is
# committed). There run README's two commands, tools/quickstart.sh and tools/test.sh; or, with --package, the Debian
# package is made, and tried in another copy of the base. Prints what passed.
# Usage, as root: bare_debian.sh [--package] SUITE [FOLDER]   (bookworm, trixie; FOLDER keeps the base for the next time)
set -euo pipefail
repository=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
source "$repository/tools/scripts/setup.sh"

package=false
if [[ ${1-} == --package ]]; then
  package=true
  shift
fi
(($# == 1 || $# == 2)) || stop "expected a suite of Debian and perhaps a folder: bare_debian.sh trixie"
suite=$1
((EUID == 0)) || stop "another Debian is mounted and entered by root only; run it as root"
mkdir -p "${2:-$repository/build/debian/$suite}"
folder=$(cd -- "${2:-$repository/build/debian/$suite}" && pwd)
base=$folder/base
install_packages debootstrap debian-archive-keyring git

# The mirror, the way to it and the trust in it are those of this machine's apt.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
[[ -n $mirror ]] || stop "apt knows no mirror of Debian; add one to /etc/apt/sources.list and run apt-get update"
eval "$(apt-config shell proxy Acquire::http::Proxy)"
export http_proxy=${http_proxy-${proxy-}}

if [[ ! -e $base/made ]]; then
  say "installing the minimal base of $suite in $base"
  rm -rf -- "$base"
  debootstrap --variant=minbase --include=git "$suite" "$base" "$mirror" >"$folder/debootstrap.log" 2>&1 || {
    tail -n 5 "$folder/debootstrap.log" >&2
    stop "debootstrap could not install $suite (see above and $folder/debootstrap.log)"
  }
  touch "$base/made"
fi

# begin NAME: a machine to be changed, a copy of the base with a clone; `inside` is there from now on.
begin() {
  root=$folder/$1
  rm -rf -- "$root"
  cp -a -- "$base" "$root"
  apt-config dump | grep -E '^Acquire::(https?::|Check-|Retries)' >"$root/etc/apt/apt.conf.d/99host" || true
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  git clone --quiet -- "$repository" "$root/root/tritgrad"
}

# inside COMMAND...: runs it there, in the clone. Mounts and processes are in namespaces that end with it,
# however it ends.
inside() {
  unshare --mount --pid --fork --kill-child -- bash -c '
    set -e
    root=$1
    shift
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
      http_proxy="$http_proxy" bash -c "cd /root/tritgrad && exec \"\$@\"" inside "$@"' \
    inside "$root" "$@" </dev/null
}

failed=0
# try COMMAND [ARGUMENT...]: a script of the repository, inside.
try() {
  local log
  log=$folder/$(basename "$1" .sh).log
  say "$suite: $1, told in $log"
  if inside bash "$@" >"$log" 2>&1; then
    say "$suite: $1 works: $(tail -n 1 "$log")"
  else
    tail -n 40 "$log" >&2
    say "$suite: $1 fails: $(tail -n 1 "$log")"
    failed=1
  fi
}

if $package; then
  begin package-root
  try tools/scripts/package.sh
  ((failed == 0)) || exit 1
  made=("$root"/root/tritgrad/build/release/tritgrad_*.deb)
  begin package-user
  cp -- "${made[@]}" "$root/tmp/tritgrad.deb"
  try tools/scripts/try_package.sh /tmp/tritgrad.deb
else
  begin root
  try tools/quickstart.sh
  try tools/test.sh
fi
exit "$failed"
