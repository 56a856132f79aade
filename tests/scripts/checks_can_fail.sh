#!/usr/bin/env bash
# A check that cannot fail checks nothing: plants one violation after the other in a copy of the
# repository and expects the right check to name it. Usage: checks_can_fail.sh COMPILER
set -euo pipefail
root=$(cd -- "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for part in engine ops optim models tools tests cmake; do
  cp -R "$root/$part" "$work/"
done

failures=0
planted=0

# expect CHECK MESSAGE FILE CONTENT: with FILE planted, CHECK must fail and say FILE:...MESSAGE.
expect() {
  local check=$1 message=$2 file=$3 content=$4 output
  printf '%b' "$content" >"$work/$file"
  planted=$((planted + 1))
  if output=$(bash "$root/tools/scripts/check_$check.sh" "$work"); then
    echo "check_$check.sh accepts $file with: $content"
    failures=$((failures + 1))
  elif ! grep -F -- "$file" <<<"$output" | grep -qF -- "$message"; then
    printf 'check_%s.sh does not say "%s" of %s but:\n%s\n' "$check" "$message" "$file" "$output"
    failures=$((failures + 1))
  fi
  rm "$work/$file"
}

for check in layers files; do
  bash "$root/tools/scripts/check_$check.sh" "$work" >/dev/null || {
    echo "check_$check.sh fails on the repository as it is"
    failures=$((failures + 1))
  }
done

touch "$work"/{engine,engine/data,engine/files,ops,optim,models,tools,tests,ops/kernels}/planted_target.h
upward() { expect layers "$1/ may not include $2/" "$1/planted.cpp" "#include \"$2/planted_target.h\"\n"; }
upward engine ops
upward engine optim
upward engine models
upward ops optim
upward optim ops
upward ops models
upward optim models
upward models tools
upward tools tests
expect layers 'private to ops/kernels/' ops/planted.cpp '#include "ops/kernels/planted_target.h"\n'
expect layers 'neither data nor files' engine/formats/planted.cpp '#include "engine/files/hash.h"\n'
expect layers 'ops/kernels/ only' ops/planted.cpp '#include <Eigen/Core>\n'
expect layers 'simd-inl.h only' tests/planted.cpp '#include <xsimd/xsimd.hpp>\n'
expect layers 'simd-inl.h only' ops/kernels/planted.cpp '#include <xsimd/xsimd.hpp>\n'
expect layers 'ops/kernels/ only' engine/planted.cpp '# include <immintrin.h>\n'
expect layers 'engine/memory/parallel.cpp only' ops/kernels/planted.cpp '#include <omp.h>\n'
expect layers 'ops/kernels/products/ only' ops/kernels/planted.cpp '#include <oneapi/dnnl/dnnl.h>\n'
expect layers 'models/export/onnx.cpp only' models/planted.cpp '#include <onnx/onnx_pb.h>\n'
expect layers 'piece_model.cpp only' models/planted.cpp '#include <google/protobuf/message_lite.h>\n'
for part in data files; do
  expect layers 'neither data nor files' engine/formats/planted.cpp \
    "#include \"engine/$part/planted_target.h\"\n"
done
expect layers 'models/ may not include tools/' models/training/planted.cpp '#include "tools/planted_target.h"\n'
for call in 'std::printf("x")' 'fprintf(stderr, "x")' 'std::fputs("x", stderr)' 'std::cerr << "x"' 'fmt::print("x")'; do
  expect layers 'may not print' models/training/planted.cpp "void f() { $call; }\n"
done
expect layers 'may not print' engine/planted.cpp '#include <iostream>\n'
expect layers 'may not end the process' optim/planted.cpp 'void f() { std::exit(1); }\n'
expect layers 'public header' engine/planted.h '#include <zlib.h>\n'
expect layers 'public header' models/planted.h '#include <nlohmann/json.hpp>\n'
expect layers 'does not exist' engine/planted.cpp '#include "planted_target.h"\n'
expect layers 'does not exist' tools/planted.cpp '#include "engine/no_such_file.h"\n'
expect layers 'cycle' engine/planted.h '#include "engine/planted.h"\n'
printf '#include "engine/planted.h"\n' >"$work/engine/planted_half.h"
expect layers 'cycle' engine/planted.h '#include "engine/planted_half.h"\n'
rm "$work/engine/planted_half.h"

expect files 'at most 600' engine/planted.cpp "$(printf '//\\n%.0s' {1..601})"
expect files 'trailing whitespace' ops/planted.h 'int x; \n'
expect files 'tab' cmake/planted.cmake '\tset(x 1)\n'
expect files 'carriage return' tools/planted.sh 'true\r\n'
expect files 'no newline' tests/planted.cpp 'int x;'
expect files 'unfinished' models/planted.cpp '// TO''DO: think\n'
expect files 'unfinished' optim/planted.cpp '// FIX''ME\n'

# Interfaces with one function more than they may have.
planted=$((planted + 1))
mkdir -p "$work/interfaces"/{engine,optim}
{
  printf 'class Storage {\n public:\n  Storage();\n'
  printf '  void f%d(int x);\n' {1..15}
  printf ' private:\n  void g(int x);\n};\n'
} >"$work/interfaces/engine/storage.h"
{
  printf 'class Rule {\n public:\n  virtual ~Rule() = default;\n'
  printf '  virtual void f%d(int x) = 0;\n' {1..11}
  printf '};\n'
} >"$work/interfaces/optim/rule.h"
if output=$(bash "$root/tools/scripts/check_interfaces.sh" "$work/interfaces") ||
  [[ $output != *"15 public functions"* || $output != *"11 virtual functions"* ]]; then
  echo "check_interfaces.sh accepts large interfaces: $output"
  failures=$((failures + 1))
fi

# A template compiled for AVX2 under a name that every file shares.
planted=$((planted + 1))
cat >"$work/target_avx2.cpp" <<'END'
template <typename T>
T twice(T x) { return x + x; }
template float twice<float>(float);
END
"$1" -O2 -mavx2 -c "$work/target_avx2.cpp" -o "$work/target_avx2.cpp.o"
ar rc "$work/planted.a" "$work/target_avx2.cpp.o"
if output=$(bash "$root/tools/scripts/check_symbols.sh" "$work/planted.a") || [[ $output != *twice* ]]; then
  echo "check_symbols.sh accepts a shared template in target_avx2.cpp"
  failures=$((failures + 1))
fi

# Kernels whose memory is not asked for.
planted=$((planted + 1))
cat >"$work/target_avx2.cpp" <<'END'
void descend_latent() {}
END
"$1" -O2 -c "$work/target_avx2.cpp" -o "$work/target_avx2.cpp.o"
ar rc "$work/planted_kernels.a" "$work/target_avx2.cpp.o"
if output=$(bash "$root/tools/scripts/check_prefetch.sh" "$work/planted_kernels.a") ||
  [[ $output != *"descend_latent"* ]]; then
  echo "check_prefetch.sh accepts kernels that ask for no memory"
  failures=$((failures + 1))
fi

echo "$planted violations planted, $failures not caught"
((failures == 0))
