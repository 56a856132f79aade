#!/usr/bin/env bash
# Runs an exported network on an emulated Cortex-M4, and compares the bits of all logits with those of the same
# header compiled for this machine. Prints the size of the image, its RAM, and the instructions of a prediction.
# Usage: cortex_m4.sh TRITGRAD            trains mlp:32 on digits and runs all its rows
#        cortex_m4.sh HEADER.h ROWS.csv   runs the rows of whole numbers 0 to 255, without names and labels
# Exit status 77: the cross compiler or qemu is not installed.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
source "$here/scripts/readers.sh"
need "gcc-arm-none-eabi, libnewlib-arm-none-eabi, qemu-system-arm" arm-none-eabi-gcc qemu-system-arm
need gcc cc
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT

if (($# == 1)); then
  "$1" train --data digits --model mlp:32 --recipe latent8 --epochs 10 --quiet --save "$folder/digits.safetensors"
  "$1" export "$folder/digits.safetensors" --to "$folder/digits.h" >/dev/null
  header=$folder/digits.h
  tail -n +2 "$here/../engine/data/digits.csv" | sed 's/,[^,]*$//' >"$folder/rows.csv"
else
  header=$(realpath -- "$1")
  cp -- "$2" "$folder/rows.csv"
fi

name=$(sed -n 's/^} \(.*\)_workspace;$/\1/p' "$header")
prefix=${name^^}
{
  echo "#define ROWS $(wc -l <"$folder/rows.csv")"
  echo "static const uint8_t rows[ROWS][${prefix}_INPUTS] IN_ROWS = {"
  sed 's/.*/{&},/' "$folder/rows.csv"
  echo '};'
} >"$folder/rows.h"

flags=(-std=c99 -pedantic -Wall -Wextra -Werror -ffp-contract=off -I "$folder" "-DMODEL=\"$header\"" "-DNAME=$name"
  "-DPREFIX=$prefix" "$here/support/cortex_m4/main.c")
cc -O2 "${flags[@]}" -o "$folder/here" -lm
# Where nothing is linked to that the linker does not find, the image needs no operating system.
arm-none-eabi-gcc -Os -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -ffunction-sections \
  "${flags[@]}" -nostartfiles -T "$here/support/cortex_m4/link.ld" -Wl,--gc-sections --specs=nosys.specs \
  -o "$folder/image.elf" -lm

"$folder/here" >"$folder/here.txt"
timeout 300 qemu-system-arm -M mps2-an386 -nographic -monitor none -serial none -icount shift=0 \
  -semihosting-config enable=on,target=native -kernel "$folder/image.elf" >"$folder/there.txt" 2>&1 </dev/null
grep -v '^[a-z]* [0-9]*$' "$folder/there.txt" | cmp - "$folder/here.txt" || {
  echo "cortex_m4: the logits on the Cortex-M4 differ from those on this machine" >&2
  exit 1
}
size() { arm-none-eabi-size -A "$folder/image.elf" | awk -v name="$1" '$1 == name { print $2 }'; }
flash=$(($(size .text) + $(size .data)))
stack=$(sed -n 's/^stack //p' "$folder/there.txt")
echo "cortex_m4: logits of $(wc -l <"$folder/here.txt") rows are equal, bit by bit"
echo "  flash         $flash B, all but the rows"
echo "  RAM           $(($(size .data) + $(size .bss) + stack)) B, $stack B of them stack"
echo "  instructions  $(sed -n 's/^instructions //p' "$folder/there.txt") a prediction"
