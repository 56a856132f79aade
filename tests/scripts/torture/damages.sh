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
  while until_share "$1"; do
    start export "$(any_of "${recipes[@]}")"
    damage m
    kept=$(sha256sum <m)
    command=$(any_of "${commands[@]}")
    # shellcheck disable=SC2086
    if [[ -s m ]] && "$tritgrad" $command >"$work/out" 2>"$work/said" </dev/null; then failed "a damaged file: $command"; fi
    if [[ -s m ]]; then
      is_refusal || failed "a damaged file: no sentence, $command"
      [[ $(sha256sum <m) == "$kept" ]] || failed "a damaged file was replaced: $command"
    fi
    start compare "$recipe"
    go compare "$recipe" || failed "compare with $recipe, of itself"
    file=$(find cache -type f -size +0 | shuf -n 1 --random-source=<(yes "$RANDOM"))
    damage "$file"
    recovers compare "$recipe" "compare with $recipe and a damaged ${file%%[0-9]*}"
    count[damages]=$((count[damages] + 2))
  done
}
