#!/usr/bin/env bash
# Runs an exported network on an emulated Cortex-M4, and compares the bits of all logits with those of the same
# header compiled for this machine. Prints the size of the image, its RAM, and the instructions of a prediction.
# Usage: cortex_m4.sh TRITGRAD            trains mlp:32 on digits and runs all its rows
#        cortex_m4.sh HEADER.h ROWS.csv   runs the rows of whole numbers 0 to 255, without names and labels
# Exit status 77: the cross compiler or qemu is not installed.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
source "$here/scripts/readers.sh"
source "$here/scripts/microcontrollers.sh"
need "gcc-arm-none-eabi, libnewlib-arm-none-eabi, qemu-system-arm" arm-none-eabi-gcc qemu-system-arm
need gcc cc
prepare_rows "$@"
write_rows "$folder/rows.csv"

compile cc -std=c99 -pedantic -O2 -o "$folder/here"
# Where nothing is linked to that the linker does not find, the image needs no operating system. The processor's own
# square root needs no errno.
compile arm-none-eabi-gcc -std=c99 -pedantic -Os -fno-math-errno -mcpu=cortex-m4 -mthumb -mfloat-abi=hard \
  -mfpu=fpv4-sp-d16 -ffunction-sections -nostartfiles -T "$here/support/microcontrollers/cortex_m4.ld" \
  -Wl,--gc-sections --specs=nosys.specs -o "$folder/image.elf"

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

# The forecast of flash holds within a tenth.
if (($# == 1)); then
  forecast=$("$1" inspect --model mlp:32 --data digits --recipe latent8 --export h --json - |
    awk -F '[:,]' '/"table_bytes"|"code_bytes_estimate"/ { sum += $2 } END { print sum }')
  echo "  forecast      $forecast B of flash"
  ((10 * forecast > 9 * flash && 10 * forecast < 11 * flash)) || {
    echo "cortex_m4: 'tritgrad inspect --export h' forecasts $forecast bytes of flash, and there are $flash" >&2
    exit 1
  }
fi
