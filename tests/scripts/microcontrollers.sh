# What tests of headers on emulated microcontrollers share. To be sourced, with $here the folder of tests.

# prepare_rows TRITGRAD            trains mlp:32 on digits, with all its rows
# prepare_rows HEADER.h ROWS.csv   rows of whole numbers 0 to 255, without names and labels
# Sets $folder, which goes away in the end, $header, $name and $prefix, the beginnings of its names, and writes
# $folder/rows.csv.
prepare_rows() {
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
}

# write_rows FILE.csv: as $folder/rows.h.
write_rows() {
  {
    echo "#define ROWS $(wc -l <"$1")"
    echo "static const IN_ROWS uint8_t rows[ROWS][${prefix}_INPUTS] = {"
    sed 's/.*/{&},/' "$1"
    echo '};'
  } >"$folder/rows.h"
}

# compile COMPILER FLAG...: the program that feeds $folder/rows.h to the network.
compile() {
  "$@" -Wall -Wextra -Werror -ffp-contract=off -I "$folder" "-DMODEL=\"$header\"" "-DNAME=$name" "-DPREFIX=$prefix" \
    "$here/support/microcontrollers/main.c" -lm
}
