# Runs that are killed at any moment, again and again, until one comes to its end. To be sourced by torture.sh.

# kill_at_random SHARE
kill_at_random() {
  local door recipe length killed
  while has_turn kills "$1"; do
    door=$(any_of "${doors[@]}")
    recipe=$(recipe_for "$door" $RANDOM)
    right "$door" "$recipe" >/dev/null
    start "$door" "$recipe"
    length=$(now)
    go "$door" "$recipe" || failed "$door with $recipe, of itself"
    length=$(($(now) - length))
    start "$door" "$recipe"
    for ((killed = 0; killed < 4; ++killed)); do
      again_killed "$door" "$recipe" $((RANDOM % (length + 1))) || break
      count[kills]=$((count[kills] + 1))
      { sound "$door" "$recipe" && opens; } || failed "$door with $recipe, killed: what was saved is not whole"
    done
    recovers "$door" "$recipe" "$door with $recipe, killed $killed times"
  done
}

# opens: the checkpoint that may be there can be used.
opens() { [[ ! -e m ]] || "$tritgrad" eval m --threads 1 >"$desk/out" 2>"$desk/said"; }

# again_killed DOOR RECIPE MILLISECONDS: whether it was killed in time.
again_killed() {
  local code=0
  set -m
  again "$1" "$2" 2>/dev/null &
  job=$!
  set +m
  sleep "$(printf '%d.%03d' $(($3 / 1000)) $(($3 % 1000)))"
  kill -KILL -- "-$job" 2>/dev/null || true
  wait "$job" 2>/dev/null || code=$?
  job=""
  ((code == 137))
}
