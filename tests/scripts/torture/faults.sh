# Every call on a file in turn: it fails, is cut short, or is the last of its process. To be sourced by torture.sh.

# list_cases DOOR RECIPE: adds to $work/cases a line for each call that the door makes and each thing that may happen to it.
# Before it stands when it has its turn: all calls of `train` come first, then of every door the same share. A stride through
# the calls spreads those of a door, wherever the time is over; numbers below one from a door to the next share its start.
list_cases() {
  right "$1" "$2" >/dev/null
  start "$1" "$2"
  rm -f "$work/trace"
  LD_PRELOAD=$work/faults.so FAULT_TRACE=$work/trace go "$1" "$2" || failed "$1 with $2 fails when its calls are counted"
  [[ -s $work/trace ]] || stop "the door '$1' makes no call on a file; is LD_PRELOAD without effect?"
  awk -v door="$1" -v recipe="$2" -v first="$RANDOM" '
    BEGIN {
      ways["write"] = "ENOSPC EIO EINTR short kill"
      ways["read"] = "EIO EINTR short"
      ways["fsync"] = "ENOSPC EIO kill"
      ways["rename"] = "ENOSPC EIO kill killed"
      ways["open"] = "ENOSPC EIO EINTR kill"
      ways["mmap"] = "ENOMEM"
      ways["flock"] = "EINTR kill"
    }
    function divisor(a, b) { return b ? divisor(b, a % b) : a }
    {
      count = split($1 in ways ? ways[$1] : "EIO kill", way)
      for (i = 1; i <= count; ++i) cases[n++] = door " " recipe " " $1 " " NR " " way[i]
    }
    END {
      for (stride = int(n * 0.618) + 1; divisor(stride, n) > 1;) ++stride
      for (i = 0; i < n; ++i) printf "%.6f %s\n", i / n - (door == "train"), cases[(first + i * stride) % n]
    }' "$work/trace" >>"$work/cases"
}

# fault_every_call SHARE: all cases of all doors by one recipe, then by the next, on all processors.
fault_every_call() {
  local number=$RANDOM door worker
  while has_turn faults "$1"; do
    rm -f "$work/cases"
    for door in "${doors[@]}"; do list_cases "$door" "$(recipe_for "$door" $number)"; done
    sort -n -o "$work/cases" "$work/cases"
    : >"$work/tried"
    workers=()
    for ((worker = 0; worker < processors; ++worker)); do
      fault_share "$1" "$worker" &
      workers+=($!)
    done
    for worker in "${workers[@]}"; do wait "$worker" || failed "what tries cases ended with exit code $?"; done
    workers=()
    count[faults]=$((count[faults] + $(wc -l <"$work/tried")))
    count[cases]=$((count[cases] + $(wc -l <"$work/cases")))
    tell_doors "$(recipe_for train $number)"
    number=$((number + 1))
  done
}

# fault_share SHARE WORKER: the cases of one of several that work beside each other, each at a desk of its own.
fault_share() {
  local door recipe kind number how
  desk=$work/worker$2
  mkdir -p "$desk"
  while read -r door recipe kind number how; do
    fault_once "$door" "$recipe" "$kind" "$number" "$how"
    echo "$door" >>"$work/tried"
    until_share "$1" || return 0
  done < <(awk -v worker="$2" -v workers="$processors" 'NR % workers == worker { print $2, $3, $4, $5, $6 }' "$work/cases")
}

# tell_doors RECIPE: how many cases of each door have been tried.
tell_doors() {
  say "calls on files, $1: $(awk 'NR == FNR { ++tried[$1]; next } { ++all[$2] }
    END { for (door in all) printf "%s %d of %d\n", door, tried[door], all[door] }' "$work/tried" "$work/cases" |
    sort | paste -sd , | sed 's/,/, /g')"
}

# fault_once DOOR RECIPE KIND NUMBER HOW
fault_once() {
  local what="$1 with $2, $5 at call $4, $3" code=0
  start "$1" "$2"
  LD_PRELOAD=$work/faults.so FAULT_AT=$4 FAULT_DO=$5 go "$1" "$2" 2>/dev/null || code=$?
  case $code in
    0)
      is_right "$1" "$2" || failed "$what: other bits, and no error"
      # What could not be removed is removed by the next run.
      if [[ $3 != unlink ]]; then
        nothing_remains "$what"
        return
      fi
      ;;
    1) if [[ $1 != python* ]] && ! is_refusal; then failed "$what: no sentence"; fi ;;
    137) [[ $5 == kill* ]] || failed "$what: killed" ;;
    *) failed "$what: exit code $code" ;;
  esac
  # What a system call may do to any program is no error.
  if [[ $3 == @(read|write) && $5 == @(EINTR|short) ]]; then failed "$what: exit code $code"; fi
  recovers "$1" "$2" "$what"
}
