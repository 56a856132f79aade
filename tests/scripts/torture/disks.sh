# Disks that are full or read-only, and limits on the size of files. To be sourced by torture.sh.

fill_disks() {
  local recipe blocks door
  recipe=$(any_of "${recipes[@]}")
  for door in train c python; do
    [[ " ${doors[*]} " == *" $door "* ]] || continue
    right "$door" "$recipe" >/dev/null
    for blocks in 1 2 3 4 6 8; do
      start "$door" "$recipe"
      refuse_on_disk "$door with files of $blocks blocks" "$door" "$recipe" "ulimit -f $blocks"
    done
  done
  mkdir -p "$work/disk"
  if ((EUID != 0)) || ! mount -t tmpfs -o size=64k none "$work/disk" 2>/dev/null; then
    skipped+=("full and read-only file systems, only root can mount them")
    return
  fi
  for blocks in 0 4 8 12 16 24 32; do
    start train "$recipe"
    rm -rf -- "$work/disk/"*
    cp t.csv "$work/disk"
    head -c $((blocks * 1024)) /dev/zero >"$work/disk/filled"
    cd "$work/disk"
    refuse_on_disk "a full disk, $blocks KiB of it filled" train "$recipe" "rm -f filled"
  done
  mount -o remount,ro "$work/disk"
  go train "$recipe" && failed "a read-only disk was written"
  is_refusal || failed "a read-only disk: no sentence"
  count[disks]=$((count[disks] + 1))
  cd "$work"
  umount "$work/disk"
}

# refuse_on_disk WHAT DOOR RECIPE COMMAND: the door ends well or in a sentence; `rm` then makes room, `ulimit` comes before.
refuse_on_disk() {
  local code=0
  if [[ $4 == ulimit* ]]; then
    ($4 && go "$2" "$3") || code=$?
  else
    go "$2" "$3" || code=$?
    $4
  fi
  count[disks]=$((count[disks] + 1))
  if ((code == 1)); then is_refusal || failed "$1: no sentence"; fi
  ((code <= 1)) || failed "$1: exit code $code"
  recovers "$2" "$3" "$1"
}
