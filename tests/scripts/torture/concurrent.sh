# Several runs on one file or one cache at a time. To be sourced by torture.sh.

run_concurrently() {
  local recipe each ended code job_ids
  while has_turn concurrent "$1"; do
    recipe=$(any_of "${recipes[@]}")
    right train "$recipe" >/dev/null
    start train "$recipe"
    set_options train "$recipe"
    job_ids=()
    for each in 1 2 3 4; do
      "$tritgrad" train "${options[@]}" --save m >/dev/null 2>"said$each" </dev/null &
      job_ids+=($!)
    done
    ended=0
    for each in "${job_ids[@]}"; do
      code=0
      wait "$each" || code=$?
      if ((code == 0)); then ended=$((ended + 1)); fi
      ((code <= 1)) || failed "one of four runs on one checkpoint, with $recipe: exit code $code"
    done
    cat said? >"$desk/said"
    ((ended >= 1)) || failed "none of four runs on one checkpoint came to its end"
    (($(grep -c 'is writing to this file' "$desk/said") == 4 - ended)) || failed "a run on a busy checkpoint gave no reason"
    recovers train "$recipe" "four runs on one checkpoint, with $recipe"

    right compare "$recipe" >/dev/null
    start compare "$recipe"
    job_ids=()
    for each in 1 2 3; do
      "$tritgrad" compare --data t.csv --model mlp:8 --recipes "$(pair "$recipe")" --seeds 1 --epochs 2 --threads 1 --cache cache \
        --quiet --json "j$each" >/dev/null 2>"$desk/said" </dev/null &
      job_ids+=($!)
    done
    for each in "${job_ids[@]}"; do wait "$each" || failed "one of three comparisons on one cache, with $recipe"; done
    for each in 1 2 3; do
      cp "j$each" j
      is_right compare "$recipe" || failed "other bits of comparisons on one cache"
    done
    count[concurrent]=$((count[concurrent] + 7))
  done
}
