#!/usr/bin/env bash
# Includes go downwards only, third-party code stays where it belongs, and libraries neither print nor exit. See
# "Layers" in HACKING.md.
# Usage: check_layers.sh [REPOSITORY]
set -euo pipefail
cd -- "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}"

folders=()
for folder in engine ops optim models tools tests; do
  [[ -d $folder ]] && folders+=("$folder")
done

find "${folders[@]}" -name '*.h' -o -name '*.cpp' | LC_ALL=C sort | awk '
function complain(what) {
  printf "%s:%d: %s\n", file, line, what
  failed = 1
}

# Depth first; a file met again while it is still open closes a cycle.
function visit(name, trail,    i, n, targets) {
  state[name] = "open"
  n = split(edges[name], targets, " ")
  for (i = 1; i <= n; ++i) {
    if (state[targets[i]] == "open") {
      printf "%s: includes form a cycle:%s %s\n", targets[i], trail, targets[i]
      failed = 1
    } else if (state[targets[i]] == "") {
      visit(targets[i], trail " " targets[i])
    }
  }
  state[name] = "done"
}

function check_project_include(target,    layer) {
  if (!(target in exists)) {
    complain("\"" target "\" does not exist; includes are written from the root of the repository")
    return
  }
  edges[file] = edges[file] " " target
  layer = target
  sub(/\/.*/, "", layer)
  if (index(" " may_include[folder] " ", " " layer " ") == 0)
    complain(folder "/ may not include " layer "/ (\"" target "\"); it may include: " \
             may_include[folder])
  if (file ~ /^engine\/formats\// && target ~ /^engine\/(data|files)\//)
    complain("engine/formats/ may not include \"" target "\"; formats know neither data nor files")
  if (target ~ /^ops\/kernels\// && file !~ /^ops\/kernels\// && folder != "tests")
    complain("\"" target "\" is private to ops/kernels/; use the tables of engine/kernels/")
}

function check_system_include(target) {
  if (target ~ /^xsimd\//) {
    if (file != "ops/kernels/simd-inl.h")
      complain("<" target "> is for ops/kernels/simd-inl.h only; say its verbs")
  } else if (target ~ /^(Eigen|unsupported)\// || target ~ /(intrin|cpuid)\.h$/) {
    if (file !~ /^ops\/kernels\//)
      complain("<" target "> is for ops/kernels/ only")
  } else if (target ~ /dnnl/) {
    if (file !~ /^ops\/kernels\/products\/(dense_convolution|dense_product|onednn)\.cpp$/)
      complain("<" target "> is for ops/kernels/products/ only; use ops/products/dense_product.h")
  } else if (target ~ /^onnx\//) {
    if (file != "models/export/onnx.cpp" && file != "tests/models/export/test_onnx.cpp")
      complain("<" target "> is for models/export/onnx.cpp only; use models/export/onnx.h")
  } else if (target ~ /^google\//) {
    if (file != "engine/data/piece_model.cpp")
      complain("<" target "> is for engine/data/piece_model.cpp only; use engine/data/piece_model.h")
  } else if (target == "mpi.h") {
    if (file != "optim/parallel/mpi/ranks.cpp")
      complain("<mpi.h> is for optim/parallel/mpi/ranks.cpp only; use optim/parallel/communicator.h")
  } else if (target == "omp.h") {
    if (file != "engine/memory/parallel.cpp")
      complain("<omp.h> is for engine/memory/parallel.cpp only; use engine/memory/parallel.h")
  } else if (is_public && target ~ /[.\/]/) {
    # Headers of the standard library are the ones without a dot or a slash.
    complain("<" target "> in a public header; include it in the .cpp file")
  }
}

# Only tools talk to people and end the process; all else returns values and throws.
function check_library_code(code) {
  sub(/\/\/.*/, "", code)
  if (code ~ /(^|[^a-zA-Z0-9_])(v?f?printf|f?puts|f?putc|putchar|perror)\(/ ||
      code ~ /std::(cout|cerr|clog)|fmt::print|<(iostream|print)>/)
    complain(folder "/ may not print; return or throw what is to be said")
  if (code ~ /(^|[^a-zA-Z0-9_.>])(_Exit|exit|quick_exit)\(/)
    complain(folder "/ may not end the process; throw an Error")
}

BEGIN {
  may_include["engine"] = "engine"
  may_include["ops"] = "ops engine"
  may_include["optim"] = "optim engine"
  may_include["models"] = "models optim ops engine"
  may_include["tools"] = "tools models optim ops engine"
  may_include["tests"] = "tests tools models optim ops engine"
}

{ files[++count] = $0; exists[$0] = 1 }

END {
  for (f = 1; f <= count; ++f) {
    file = files[f]
    folder = file
    sub(/\/.*/, "", folder)
    is_public = file ~ /\.h$/ && folder !~ /^(tools|tests)$/ && file !~ /^ops\/kernels\// && file !~ /-inl\.h$/
    line = 0
    while ((getline text < file) > 0) {
      ++line
      if (folder !~ /^(tools|tests)$/) check_library_code(text)
      if (text !~ /^[ \t]*#[ \t]*include[ \t]*["<]/) continue
      ++includes
      quoted = text ~ /include[ \t]*"/
      sub(/^[^"<]*["<]/, "", text)
      sub(/[">].*$/, "", text)
      if (quoted) check_project_include(text)
      else check_system_include(text)
    }
    close(file)
  }
  for (f = 1; f <= count; ++f)
    if (state[files[f]] == "") visit(files[f], " " files[f])
  if (!failed) printf "layers: %d includes in %d files, all in order\n", includes, count
  exit failed
}'
