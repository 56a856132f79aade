# The doors of tools/scripts/torture.sh: commands that do work in a folder of their own, and what must come out of each. To be
# sourced. $desk is where this shell, or one that works beside others, has that folder, `run`, and what programs print.

export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 TRITGRAD_LIBRARY=$library PYTHONPATH=$repository/tools/python
recipes=() text_recipes=()
# The doors that train, go on from a checkpoint, and do something else with one.
doors=(train train-resume conv conv-resume text text-resume c c-resume compare export generate)

# What the doors need to begin is in start/: a table, a text, a language model `lm`, and an export m.h that is to be replaced.
prepare() {
  mkdir "$work/start" "$work/begin" "$work/right"
  cc -O1 -shared -fPIC -o "$work/faults.so" "$repository/tests/scripts/torture/file_faults.c" -ldl
  cc -o "$work/door" -I "$repository/tools/c" "$repository/tests/scripts/doors/door.c" "$library" \
    -Wl,-rpath,"$(dirname -- "$library")"
  if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    doors+=(python python-resume)
  else
    lack Python "NumPy is not installed (Debian's python3-numpy)"
  fi
  mapfile -t recipes < <("$tritgrad" recipes | awk '$2 ~ /^[0-9]+\.[0-9]+$/ && $1 !~ /-lm$/ { print $1 }')
  mapfile -t text_recipes < <("$tritgrad" recipes | awk '$2 ~ /^[0-9]+\.[0-9]+$/ && $1 ~ /-lm$/ { print $1 }')
  ((${#recipes[@]} > 10 && ${#text_recipes[@]} > 5)) ||
    stop "'tritgrad recipes' names ${#recipes[@]} recipes, and ${#text_recipes[@]} of language models"
  (
    cd "$work/start"
    awk 'BEGIN { print "a,b,c,y"
                 for (i = 0; i < 200; i++) printf "%d,%.1f,%d,%s\n", i % 7, i * 37 % 100 / 10, i % 2 * 3 + i % 3,
                                                  i % 2 ? "yes" : "no" }' >t.csv
    awk 'BEGIN { for (i = 0; i < 300; i++) printf "The %d people of this union are %s. ", i % 9, i % 2 ? "free" : "one" }' \
      >text.txt
    head -c 1000 text.txt >short.txt
    "$tritgrad" train --data text:text.txt --model llama:1,32:heads=2:context=32 --recipe latent8-lm --epochs 1 --quiet \
      --save lm --threads 1
    "$tritgrad" train --data t.csv --model mlp:4 --recipe fp32 --epochs 1 --quiet --save m --threads 1
    "$tritgrad" export m --to m.h --threads 1 >/dev/null
    rm m
  )
}

# recipe_for DOOR NUMBER: the numbers go through all that the door can train by.
recipe_for() {
  if [[ $1 == text* ]]; then
    echo "${text_recipes[$2 % ${#text_recipes[@]}]}"
  else
    echo "${recipes[$2 % ${#recipes[@]}]}"
  fi
}

# start DOOR RECIPE: the current folder is as before the command, files of earlier times included.
start() {
  local begin=$work/begin/$1.$2
  if [[ ! -d $begin ]]; then
    cp -r "$work/start" "$begin"
    cd "$begin"
    case $1 in
      *-resume) begin_training "$1" "$2" --stop-after 1 --save m ;;
      export) begin_training "$1" "$2" --save m ;;
      compare) echo '{}' >j ;;
    esac
  fi
  rm -rf -- "$desk/run"
  cp -r "$begin" "$desk/run"
  cd "$desk/run"
}

begin_training() {
  set_options "$1" "$2"
  "$tritgrad" train "${options[@]}" "${@:3}" 2>"$desk/said" || stop "training $2 fails by itself: $(cat "$desk/said")"
}

# set_options DOOR RECIPE: `options` are those of the smallest runs with a save before the last step; of a perceptron, with a
# second epoch, too. A save of a language model is hundreds of calls.
set_options() {
  options=(--recipe "$2" --threads 1 --quiet)
  case $1 in
    conv*) options+=(--data digits --model conv:4,M,8 --batch 400 --epochs 1) ;;
    text*) options+=(--data text:short.txt --model llama:1,16:heads=2:context=16 --batch 16 --epochs 1) ;;
    *) options+=(--data t.csv --model mlp:8 --batch 80 --epochs 2) ;;
  esac
}

table='{"data": "t.csv"}' python_door=$repository/tests/scripts/doors/door.py
# json_spec RECIPE [MORE]: what set_options has, for C and Python.
json_spec() {
  echo "{\"model\": \"mlp:8\", \"recipe\": \"$1\", \"epochs\": 2, \"batch\": 80, \"save\": \"m\", \"save_every\": 3${2-}}"
}

# pair RECIPE: it and another one, to be compared.
pair() { if [[ $1 == fp32 ]]; then echo fp32,votes; else echo "$1,fp32"; fi; }

# go DOOR RECIPE: the command itself, under the environment that is set.
go() {
  local command
  case $1 in
    train | conv | text)
      set_options "$1" "$2"
      command=("$tritgrad" train "${options[@]}" --save m --save-every 3 --log l --json j)
      ;;
    c) command=("$work/door" "$table" "$(json_spec "$2")") ;;
    c-resume) command=("$work/door" "$table" "$(json_spec "$2" ', "resume": "m"')") ;;
    python) command=(/usr/bin/python3 -B "$python_door" "$table" "$(json_spec "$2")") ;;
    python-resume) command=(/usr/bin/python3 -B "$python_door" "$table" "$(json_spec "$2" ', "resume": "m"')") ;;
    *-resume) command=("$tritgrad" train --resume m --threads 1 --quiet --save-every 3 --log l --json j) ;;
    compare) command=("$tritgrad" compare --data t.csv --model mlp:8 --recipes "$(pair "$2")" --seeds 1 --epochs 2 --threads 1
      --cache cache --quiet --json j) ;;
    export) command=("$tritgrad" export m --to m.h --threads 1) ;;
    generate) command=("$tritgrad" generate lm --prompt 'The ' --length 20 --quiet --threads 1) ;;
  esac
  "${command[@]}" >"$desk/out" 2>"$desk/said" </dev/null
}

# again DOOR RECIPE: the work is done after all, from what a blow has left.
again() {
  local door=$1
  if [[ $door == @(train|conv|text|c|python) && -e m ]]; then door=$door-resume; fi
  go "$door" "$2"
}

# result DOOR: a text that holds all bits that must be right: of training the checkpoint, the log, and the result, but for time,
# memory, and a fraction of what this process has done.
result() {
  case $1 in
    compare) grep -o '"weights_sha256":"[0-9a-f]*"' j | sort ;;
    export) sha256sum <m.h ;;
    generate) sha256sum <"$desk/out" ;;
    *)
      sha256sum <m
      if [[ $1 == @(c|python)* ]]; then timeless "$desk/out"; else timeless l j; fi
      ;;
  esac
}
timeless() { sed -E 's/"(seconds|time|peak_live_bytes|movable_fraction)":(\{[^}]*\}|[^,}]*)//g' "$@"; }

# right DOOR RECIPE: what result says where nothing happens; computed once.
right() {
  local file=$work/right/$1.$2
  if [[ ! -e $file ]]; then
    start "$1" "$2"
    go "$1" "$2" || stop "'$1' with $2 fails by itself: $(cat "$desk/said")"
    result "$1" >"$file"
  fi
  cat "$file"
}

# sound DOOR RECIPE: what is there in the middle of the work is whole. A checkpoint is there; `again` verifies it.
sound() {
  case $1 in
    compare) [[ $(<j) == '{'*'}' ]] ;;
    export) cmp -s m.h "$work/start/m.h" || [[ $(result export) == "$(<"$work/right/export.$2")" ]] ;;
    *-resume) [[ -e m ]] ;;
  esac
}

# recovers DOOR RECIPE WHAT: nothing is lost, and the work ends as if nothing had happened.
recovers() {
  sound "$1" "$2" || { failed "$3: what was there is not whole" && return; }
  again "$1" "$2" || { failed "$3: the work does not go on" && return; }
  is_right "$1" "$2" || { failed "$3: other bits" && return; }
  nothing_remains "$3"
}

is_right() { [[ $(result "$1") == "$(<"$work/right/$1.$2")" ]]; }

nothing_remains() {
  [[ -z $(find . -name '*.tritgrad-tmp') ]] || failed "$1: remains of a file that was not finished"
}

# is_refusal: one line was said beside warnings, and no long one.
is_refusal() {
  (($(wc -c <"$desk/said") < 1500)) && [[ $(sed '/^warning: /d' "$desk/said") =~ ^"tritgrad: "[^$'\n']*$ ]]
}

any_of() {
  shift $((RANDOM % $#))
  echo "$1"
}
