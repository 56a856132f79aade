# The doors of tools/scripts/torture.sh: commands that do work in a folder of their own, and what must come out of each. To be
# sourced.

export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 TRITGRAD_LIBRARY=$library PYTHONPATH=$repository/tools/python
recipes=()
# The doors that train, go on from a checkpoint, and do something else with one.
doors=(train resume c c-resume compare export generate)

# What the doors need to begin is in start/: a table, a language model `lm`, and an export m.h that is to be replaced.
prepare() {
  mkdir "$work/start" "$work/begin" "$work/run" "$work/right"
  cc -O1 -shared -fPIC -o "$work/faults.so" "$repository/tests/scripts/torture/file_faults.c" -ldl
  cc -o "$work/door" -I "$repository/tools/c" "$repository/tests/scripts/doors/door.c" "$library" \
    -Wl,-rpath,"$(dirname -- "$library")"
  if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then doors+=(python python-resume); fi
  mapfile -t recipes < <("$tritgrad" recipes | awk '$2 ~ /^[0-9]+\.[0-9]+$/ && $1 !~ /-lm$/ { print $1 }')
  ((${#recipes[@]} > 10)) || stop "'tritgrad recipes' names ${#recipes[@]} recipes"
  (
    cd "$work/start"
    awk 'BEGIN { print "a,b,c,y"
                 for (i = 0; i < 200; i++) printf "%d,%.1f,%d,%s\n", i % 7, i * 37 % 100 / 10, i % 2 * 3 + i % 3,
                                                  i % 2 ? "yes" : "no" }' >t.csv
    awk 'BEGIN { for (i = 0; i < 300; i++) printf "The %d people of this union are %s. ", i % 9, i % 2 ? "free" : "one" }' \
      >text.txt
    "$tritgrad" train --data text:text.txt --model llama:1,32:heads=2:context=32 --recipe latent8-lm --epochs 1 --quiet \
      --save lm --threads 1
    "$tritgrad" train --data t.csv --model mlp:4 --recipe fp32 --epochs 1 --quiet --save m --threads 1
    "$tritgrad" export m --to m.h --threads 1 >/dev/null
    rm m
  )
}

# start DOOR RECIPE: the current folder is as before the command, files of earlier times included.
start() {
  local begin=$work/begin/$1.$2
  if [[ ! -d $begin ]]; then
    cp -r "$work/start" "$begin"
    cd "$begin"
    case $1 in
      *resume) train_whole "$2" --stop-after 7 --save m ;;
      export) train_whole "$2" --save m ;;
      compare) echo '{}' >j ;;
    esac
  fi
  rm -rf -- "$work/run"
  cp -r "$begin" "$work/run"
  cd "$work/run"
}

train_whole() {
  local recipe=$1
  shift
  "$tritgrad" train --data t.csv --model mlp:8 --recipe "$recipe" --epochs 3 --threads 1 --quiet "$@" 2>"$work/said" ||
    stop "training $recipe fails by itself: $(cat "$work/said")"
}

table='{"data": "t.csv"}' python_door=$repository/tests/scripts/doors/door.py
# json_spec RECIPE [MORE]: what train has for its options, for C and Python.
json_spec() {
  echo "{\"model\": \"mlp:8\", \"recipe\": \"$1\", \"epochs\": 3, \"save\": \"m\", \"save_every\": 2${2-}}"
}

# pair RECIPE: it and another one, to be compared.
pair() { if [[ $1 == fp32 ]]; then echo fp32,votes; else echo "$1,fp32"; fi; }

# go DOOR RECIPE: the command itself, under the environment that is set.
go() {
  local command
  case $1 in
    train) command=("$tritgrad" train --data t.csv --model mlp:8 --recipe "$2" --epochs 3 --threads 1 --quiet --save m
      --save-every 2 --log l --json j) ;;
    resume) command=("$tritgrad" train --resume m --threads 1 --quiet --save-every 2 --log l --json j) ;;
    c) command=("$work/door" "$table" "$(json_spec "$2")") ;;
    c-resume) command=("$work/door" "$table" "$(json_spec "$2" ', "resume": "m"')") ;;
    python) command=(/usr/bin/python3 -B "$python_door" "$table" "$(json_spec "$2")") ;;
    python-resume) command=(/usr/bin/python3 -B "$python_door" "$table" "$(json_spec "$2" ', "resume": "m"')") ;;
    compare) command=("$tritgrad" compare --data t.csv --model mlp:8 --recipes "$(pair "$2")" --seeds 1 --epochs 2 --threads 1
      --cache cache --quiet --json j) ;;
    export) command=("$tritgrad" export m --to m.h --threads 1) ;;
    generate) command=("$tritgrad" generate lm --prompt 'The ' --length 20 --quiet --threads 1) ;;
  esac
  "${command[@]}" >"$work/out" 2>"$work/said" </dev/null
}

# again DOOR RECIPE: the work is done after all, from what a blow has left.
again() {
  local door=$1
  if [[ $door == @(train|c|python) && -e m ]]; then door=${door/train/resume}; fi
  if [[ $door == @(c|python) && -e m ]]; then door=$door-resume; fi
  go "$door" "$2"
}

# result DOOR: a text that holds all bits that must be right.
result() {
  case $1 in
    compare) grep -o '"weights_sha256":"[0-9a-f]*"' j | sort ;;
    export) sha256sum <m.h ;;
    generate) sha256sum <"$work/out" ;;
    *) sha256sum <m ;;
  esac
}

# right DOOR RECIPE: what result says where nothing happens; computed once.
right() {
  local file=$work/right/$1.$2
  if [[ ! -e $file ]]; then
    start "$1" "$2"
    go "$1" "$2" || stop "'$1' with $2 fails by itself: $(cat "$work/said")"
    result "$1" >"$file"
  fi
  cat "$file"
}

# sound DOOR: what is there in the middle of the work is whole.
sound() {
  case $1 in
    compare) [[ $(<j) == '{'*'}' ]] ;;
    export) cmp -s m.h "$work/start/m.h" || [[ $(result export) == "$(<"$work/right/export.$2")" ]] ;;
    generate) true ;;
    *resume) [[ -e m ]] && "$tritgrad" eval m --threads 1 >/dev/null 2>"$work/said" ;;
    *) [[ ! -e m ]] || "$tritgrad" eval m --threads 1 >/dev/null 2>"$work/said" ;;
  esac
}

# recovers DOOR RECIPE WHAT: nothing is lost, and the work ends as if nothing had happened.
recovers() {
  sound "$1" "$2" || { failed "$3: what was there is not whole" && return; }
  again "$1" "$2" || { failed "$3: the work does not go on" && return; }
  [[ $(result "$1") == "$(<"$work/right/$1.$2")" ]] || { failed "$3: other bits" && return; }
  [[ -z $(find . -name '*.tritgrad-tmp') ]] || failed "$3: remains of a file that was not finished"
}

# is_refusal: one line was said beside warnings, and no long one.
is_refusal() {
  (($(wc -c <"$work/said") < 1500)) && [[ $(sed '/^warning: /d' "$work/said") =~ ^"tritgrad: "[^$'\n']*$ ]]
}

any_of() {
  shift $((RANDOM % $#))
  echo "$1"
}
