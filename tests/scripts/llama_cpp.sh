#!/usr/bin/env bash
# Language models as GGUF files in llama.cpp (npm's node-llama-cpp, with its program for x86-64): networks of random
# numbers in every type of tensor, with grouped heads, a tied head, and both kinds of tokens, compute there what we do.
# Usage: llama_cpp.sh TRITGRAD TRITGRAD_GGUF_CASES
# Exit status 77: npm has no node-llama-cpp.
set -euo pipefail
tritgrad=$(realpath -- "$1")
make_cases=$(realpath -- "$2")
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
source "$here/scripts/readers.sh"
need "nodejs, npm" node npm
if ! node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'; then
  echo "skipped: node-llama-cpp takes Node 20, and this is $(node --version)"
  exit 77
fi
# (The lock file leaves out its programs for other machines and for graphics cards, which are hundreds of megabytes.)
readers=$(dirname -- "$tritgrad")/llama_cpp
install_with_npm "$here/readers/llama_cpp" "$readers" node-llama-cpp

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
"$make_cases" "$work"
node "$here/readers/read_gguf.mjs" "$readers" "$work"/*
