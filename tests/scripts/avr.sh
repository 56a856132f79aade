#!/usr/bin/env bash
# Runs an exported network on an emulated AVR of 8 bits, an ATmega328P of 32 KiB flash and 2 KiB RAM, and compares
# the classes of all rows with those of the same header compiled for this machine. On an AVR `double` has 32 bits, so
# the last bits of logits may differ: rows for which they do are counted. Prints flash, RAM and cycles.
# Usage: avr.sh TRITGRAD            trains mlp:32 on digits and runs all its rows
#        avr.sh HEADER.h ROWS.csv   runs the rows of whole numbers 0 to 255, without names and labels
# Exit status 77: the cross compiler or simavr is not installed.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
source "$here/scripts/readers.sh"
source "$here/scripts/microcontrollers.sh"
need "gcc-avr, avr-libc, simavr" avr-gcc simavr
need gcc cc
prepare_rows "$@"

# Rows lie in flash too, so they come in pieces that leave room for the network.
inputs=$(head -n 1 "$folder/rows.csv" | tr ',' '\n' | wc -l)
split -l $((12000 / inputs)) "$folder/rows.csv" "$folder/piece."
for piece in "$folder"/piece.??; do
  write_rows "$piece"
  compile cc -std=c99 -pedantic -O2 -o "$folder/here"
  "$folder/here" >>"$folder/here.txt"
  compile avr-gcc -std=gnu99 -Os -mmcu=atmega328p -ffunction-sections -Wl,--gc-sections -o "$folder/image.elf"
  timeout 300 simavr -m atmega328p -f 16000000 "$folder/image.elf" >"$folder/simavr.txt" 2>&1 </dev/null
  # simavr puts a dot for the end of a line, and colours around it.
  sed 's/\x1b\[[0-9;]*m//g; s/\.*$//' "$folder/simavr.txt" >"$folder/there.piece"
  grep 'class [0-9]*$' "$folder/there.piece" >>"$folder/there.txt"
done

paste -d '|' "$folder/here.txt" "$folder/there.txt" | awk -F '|' '
  { split($1, here, "class "); split($2, there, "class "); rows++ }
  here[1] != there[1] { differing++ }
  here[2] != there[2] { print "avr: row " NR " is of class " here[2] " on this machine, and " there[2] " on the AVR"; wrong = 1 }
  END {
    if (!rows || wrong) { print "avr: classes differ"; exit 1 }
    print "avr: classes of " rows " rows are equal; in " differing + 0 " of them logits differ in their last bits"
  }'
size() { avr-size -A "$folder/image.elf" | awk -v name="$1" '$1 == name { print $2 }'; }
stack=$(sed -n 's/^stack //p' "$folder/there.piece")
rows=$(($(wc -l <"$piece") * inputs))
echo "  flash   $(($(size .text) + $(size .data) - rows)) B, all but the rows"
echo "  RAM     $(($(size .data) + $(size .bss) + stack)) B, $stack B of them stack"
echo "  cycles  $(sed -n 's/^cycles //p' "$folder/there.piece") a prediction"
