# Damaged checkpoints and caches: refused in a sentence, or computed anew. To be sourced by torture.sh.

# damage FILE: a byte changes, or the end is cut off, or something follows it.
damage() {
  local size place byte
  size=$(stat -c %s "$1")
  place=$((RANDOM * 32768 + RANDOM))
  place=$((place % size))
  case $((RANDOM % 4)) in
    0) truncate -s "$place" "$1" ;;
    1) printf 'x' >>"$1" ;;
    *)
      byte=$(od -An -tu1 -j "$place" -N 1 "$1")
      printf "$(printf '\\x%02x' $((byte ^ (1 << RANDOM % 8))))" | dd of="$1" bs=1 seek="$place" conv=notrunc status=none
      ;;
  esac
}

damage_files() {
  local recipe kept command file
  local commands=("eval m" "train --resume m --epochs 4 --quiet" "inspect m" "export m --to x.h" "generate m --length 3"
    "train --data t.csv --epochs 1 --quiet --save m")
  recipe=$(any_of "${recipes[@]}")
  right compare "$recipe" >/dev/null
  while has_turn damages "$1"; do
    start export "$(any_of "${recipes[@]}")"
    damage m
    # An empty file is as good as none to who would save.
    if [[ -s m ]]; then
      kept=$(sha256sum <m)
      command=$(any_of "${commands[@]}")
      # shellcheck disable=SC2086
      if "$tritgrad" $command >"$desk/out" 2>"$desk/said" </dev/null; then failed "a damaged file: $command"; fi
      is_refusal || failed "a damaged file: no sentence, $command"
      [[ $(sha256sum <m) == "$kept" ]] || failed "a damaged file was replaced: $command"
      count[damages]=$((count[damages] + 1))
    fi
    start compare "$recipe"
    go compare "$recipe" || failed "compare with $recipe, of itself"
    file=$(find cache -type f -size +0 | shuf -n 1 --random-source=<(yes "$RANDOM"))
    damage "$file"
    recovers compare "$recipe" "compare with $recipe and a damaged ${file%%[0-9]*}"
    count[damages]=$((count[damages] + 1))
  done
}
