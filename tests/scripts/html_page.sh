#!/usr/bin/env bash
# Opens exported pages in headless Chromium and uses them: digits are drawn, a picture is chosen, a form is filled in. What
# they show is what the ES module of the same network says in Node; they write nothing to the console, and ask no network.
# Usage: html_page.sh TRITGRAD
# Exit status 77: Node, Chromium or chromium-driver is not installed.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
source "$here/scripts/readers.sh"
need nodejs node
need "chromium, chromium-driver" chromium chromedriver
tritgrad=$(realpath -- "$1")
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
cd -- "$folder"
echo '{"type": "module"}' >package.json

# use_page NAME TRAIN-OPTIONS...: trains, exports, and uses the page.
use_page() {
  local name=$1
  shift
  "$tritgrad" train --quiet "$@" --save m.safetensors
  for ending in js html; do "$tritgrad" export m.safetensors --to "m.$ending" >/dev/null; done
  node "$here/support/javascript/page.mjs" m.html m.js || {
    echo "html_page: the page of $name does not do what its module says" >&2
    exit 1
  }
}

use_page digits --data digits --model mlp:32 --recipe latent8 --epochs 10

# Sixty pictures of noise in the files of CIFAR-10.
node --input-type=commonjs -e 'let x = 1; const bytes = Uint8Array.from({ length: 10 * 3073 }, (_, i) =>
    i % 3073 === 0 ? i / 3073 : (x = x * 69069 + 1 & 0x7fffffff) >> 16 & 255);
  ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"].forEach((name) =>
    require("fs").writeFileSync(`${name}.bin`, bytes))'
mkdir noise
mv -- *.bin noise
use_page pictures --data noise --model conv:4,M --recipe latent8 --epochs 1

# Words and names that would end a script, a tag, an attribute or a cell, and cells that are missing.
awk 'BEGIN {
  print "\"size</script><b>\",\"a \"\"x\"\" & é\",\"a,b;c\",class"
  for (i = 0; i < 90; i++) {
    print (i % 7 ? 10 + i % 40 : "") "," (i % 5 ? i % 3 : "?") ",\"" (i % 2 ? "<!--, <script>" : "\"\"q\"\"") "\"," \
      (i % 2 ? "<i>yes" : "no & \\\\")
  }
}' >names.csv
use_page "a table" --data names.csv --missing mean --model mlp:8 --recipe latent8 --epochs 5

# Seventy columns, and thirty classes whose long names differ near their ends.
awk 'BEGIN {
  for (j = 0; j < 70; j++) printf "measure_%d,", j
  print "class"
  for (i = 0; i < 300; i++) {
    for (j = 0; j < 70; j++) printf "%d,", (i * (j + 3)) % 11
    printf "the class of all things whose name goes on and on: number %d of thirty\n", i % 30
  }
}' >wide.csv
use_page "a wide table" --data wide.csv --model mlp:8 --recipe latent8 --epochs 1
echo "html_page: four pages show what their modules say"
