# Jobs of two ranks, one of which is killed or stops. To be sourced by torture.sh.

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# joint ARGUMENT...: a job of two ranks.
joint() {
  TMPDIR=$desk/run timeout 120 mpirun -n 2 --oversubscribe --bind-to none "$tritgrad" train --threads 1 --quiet "$@" \
    >"$desk/said" 2>&1 </dev/null
}

kill_ranks() {
  local signal victim begun tries wanted
  if ! mpirun --version >"$desk/out" 2>&1 || ! grep -q "Open MPI" "$desk/out"; then
    lack ranks "Open MPI's mpirun is not installed (Debian's openmpi-bin)"
    return
  fi
  local run=(--data t.csv --model mlp:8 --recipe votes --dp votes --micro-batches 2)
  start train votes
  joint "${run[@]}" --epochs 40 --save m || { failed "a job of two ranks, of itself" && return; }
  wanted=$(sha256sum <m)
  while has_turn ranks "$1"; do
    for signal in KILL STOP; do
      rm -f m
      joint "${run[@]}" --epochs 1000000 --dp-timeout 2 --save "$desk/run/m" &
      job=$!
      for ((tries = 0; tries < 600; ++tries)); do
        [[ -s m ]] && break
        sleep 0.05
      done
      sleep "0.$((RANDOM % 10))"
      victim=$(pgrep -n -f -- "--save $desk/run/m" || true)
      [[ -n $victim ]] || { failed "a job of two ranks did not begin" && return; }
      begun=$SECONDS
      kill -"$signal" "$victim"
      if wait "$job"; then failed "a job with a rank that got $signal ended well"; fi
      job=""
      ((SECONDS - begun <= 30)) || failed "a rank that got $signal was noticed after $((SECONDS - begun)) s"
      kill -KILL "$victim" 2>/dev/null || true
      "$tritgrad" eval m --threads 1 >/dev/null 2>"$desk/said" || failed "the checkpoint of ranks, one of which got $signal"
      # Two ranks that stop after some steps and go on have the bits of those that do not.
      rm -f m
      joint "${run[@]}" --epochs 40 --stop-after $((RANDOM % 150 + 1)) --save m || failed "ranks that stop"
      joint --resume m || failed "ranks that go on"
      [[ $(sha256sum <m) == "$wanted" ]] || failed "ranks that went on have other bits"
      count[ranks]=$((count[ranks] + 1))
    done
  done
}
