# What tools/quickstart.sh and tools/test.sh share: packages and builds. To be sourced, with the root of
# the repository as the current folder.

say() { printf 'tritgrad: %s\n' "$*"; }
stop() {
  printf 'tritgrad: %s\n' "$*" >&2
  exit 1
}

# (libzstd-dev: a static libcrypto, as pkg-config tells of it, wants it from Debian 13 on.)
kBuildPackages=(g++ cmake ninja-build pkg-config libeigen3-dev libxsimd-dev libssl-dev zlib1g-dev libzstd-dev
  libxxhash-dev nlohmann-json3-dev libtomlplusplus-dev libfmt-dev libcli11-dev doctest-dev
  libdnnl-dev libpng-dev libutfcpp-dev libzip-dev libonnx-dev libprotobuf-dev
  libopenmpi-dev openmpi-bin)
# clang with its run-times: sanitizers, libFuzzer, OpenMP with Archer.
kClangPackages=(clang libclang-rt-dev libomp-dev llvm)
# Readers of exported models: cross compilers for Cortex-M and AVR with machines that run what they make, and Python's
# NumPy; what the Python package is tested with; SentencePiece, whose tokenizers are read; and what messages name and
# their tests run: unpackers.
kReaderPackages=(gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm gcc-avr avr-libc simavr python3-numpy
  python3-pytest python3-sklearn python3-venv python3-pip python3-setuptools python3-wheel
  sentencepiece bzip2 xz-utils zstd)
# Readers that take hundreds of megabytes: continuous integration has them, for others their tests are skipped.
kLargeReaderPackages=(chromium chromium-driver python3-torch libopenblas0-openmp libjemalloc2 python3-onnx
  python3-pandas python3-matplotlib python3-nbconvert python3-ipykernel)

# install_packages NAME...: installs with apt what is not there yet.
install_packages() {
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
    stop "this script installs packages with apt, and this system has no apt; install the" \
      "equivalents of '$*' and run: cmake --preset release && cmake --build --preset release"
  local missing=() package
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
      missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      stop "packages are missing and only root can install them, but there is no sudo; run as root:" \
        "apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  local log status=0
  log=$(mktemp)
  # Outdated package lists may still do, so only the installation decides.
  "${as_root[@]}" apt-get update -qq >"$log" 2>&1 || true
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends "${missing[@]}" >>"$log" 2>&1 </dev/null || status=$?
  if ((status != 0)); then
    tail -n 15 "$log" >&2
    rm "$log"
    stop "apt-get could not install ${missing[*]} (see above); is the network reachable?"
  fi
  rm "$log"
}

# install_tools NAME...: installs the packages of commands that are not there; what needs them can be
# left out, so that a failure is only told.
install_tools() {
  local missing=() tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  ((${#missing[@]} == 0)) || (install_packages "${missing[@]}") ||
    say "going on without ${missing[*]}"
}

# build PRESET [TARGET...]: configures and builds what is missing in build/PRESET. Shows problems only,
# and on a terminal the progress.
build() {
  local preset=$1 cache=build/$1/CMakeCache.txt fresh=() options=() source
  shift
  if [[ -f $cache ]]; then
    # A build folder that was copied along with its repository belongs to the old place.
    source=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$cache")
    [[ $source -ef . ]] || fresh=(--fresh)
  fi
  [[ -t 1 ]] || options=(--quiet)
  say "building build/$preset (minutes the first time)"
  cmake --preset "$preset" "${fresh[@]}" --log-level=WARNING >/dev/null &&
    cmake --build --preset "$preset" ${1:+--target "$@"} --parallel "$(nproc)" -- "${options[@]}"
}

# need_torch: Debian's PyTorch with OpenBLAS and jemalloc, for comparisons with it.
need_torch() {
  # libblas.so.3 of a plain installation is the reference BLAS, which is many times slower.
  install_packages python3-torch libopenblas0-openmp libjemalloc2
  # Debian's own interpreter: others do not see Debian's packages.
  /usr/bin/python3 -c 'import torch' 2>/dev/null ||
    stop "/usr/bin/python3 cannot import torch, though python3-torch is installed; see:" \
      "/usr/bin/python3 -c 'import torch'"
}

# need_program: build/release/tritgrad.
need_program() {
  [[ ! -x build/release/tritgrad ]] || return 0
  install_packages "${kBuildPackages[@]}"
  build release tritgrad_cli
}
