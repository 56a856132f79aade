# Every call on a file in turn: it fails, is cut short, or is the last of its process. To be sourced by torture.sh.

# list_cases DOOR: a line for each call that the door makes with a recipe by chance, and what may happen to it, in random
# order, in $work/cases.DOOR.
list_cases() {
  local recipe
  recipe=$(any_of "${recipes[@]}")
  right "$1" "$recipe" >/dev/null
  start "$1" "$recipe"
  rm -f "$work/trace"
  LD_PRELOAD=$work/faults.so FAULT_TRACE=$work/trace go "$1" "$recipe" || failed "$1 with $recipe fails when its calls are counted"
  awk -v recipe="$recipe" -v seed="$RANDOM" '
    BEGIN {
      srand(seed)
      ways["write"] = "ENOSPC EIO EINTR short kill"
      ways["read"] = "EIO EINTR short"
      ways["fsync"] = "ENOSPC EIO kill"
      ways["rename"] = "ENOSPC EIO kill killed"
      ways["open"] = "ENOSPC EIO EINTR kill"
      ways["mmap"] = "ENOMEM"
      ways["flock"] = "EINTR kill"
    }
    {
      count = split($1 in ways ? ways[$1] : "EIO kill", way)
      for (i = 1; i <= count; ++i) print rand() "\t" recipe, $1, NR, way[i]
    }' "$work/trace" | sort -k 1,1 | cut -f 2- >"$work/cases.$1"
  [[ -s $work/cases.$1 ]] || stop "the door '$1' makes no call on a file; is LD_PRELOAD without effect?"
}

# fault_every_call SHARE: a case of each door after the other, until that share of the time is over.
fault_every_call() {
  local door recipe kind number how
  local -A next=()
  while true; do
    for door in "${doors[@]}"; do
      until_share "$1" || return 0
      if ((${next[$door]-0} == 0)); then list_cases "$door"; fi
      next[$door]=$((${next[$door]-0} + 1))
      read -r recipe kind number how < <(sed -n "${next[$door]}p" "$work/cases.$door")
      fault_once "$door" "$recipe" "$kind" "$number" "$how"
      if ((next[$door] == $(wc -l <"$work/cases.$door"))); then next[$door]=0; fi
    done
  done
}

# fault_once DOOR RECIPE KIND NUMBER HOW
fault_once() {
  local what="$1 with $2, $5 at call $4, $3" code=0
  start "$1" "$2"
  LD_PRELOAD=$work/faults.so FAULT_AT=$4 FAULT_DO=$5 go "$1" "$2" 2>/dev/null || code=$?
  count[faults]=$((count[faults] + 1))
  case $code in
    0) [[ $(result "$1") == "$(<"$work/right/$1.$2")" ]] || failed "$what: other bits, and no error" ;;
    1) if [[ $1 != python* ]] && ! is_refusal; then failed "$what: no sentence"; fi ;;
    137) [[ $5 == kill* ]] || failed "$what: killed" ;;
    *) failed "$what: exit code $code" ;;
  esac
  # What a system call may do to any program is no error.
  if [[ $3 == @(read|write) && $5 == @(EINTR|short) ]] && ((code != 0)); then failed "$what: exit code $code"; fi
  recovers "$1" "$2" "$what"
}
