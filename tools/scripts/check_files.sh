#!/usr/bin/env bash
# One idea per file, so no source file is longer than 600 lines; text files are clean.
# Prints the budget of every folder, then the sums of all source files without tests, and of the tests. Usage: check_files.sh [REPOSITORY]
set -euo pipefail
cd -- "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}"

text_files() {
  find . -maxdepth 1 -type f \
    \( -name '*.md' -o -name '*.txt' -o -name '*.json' -o -name '*.toml' -o -name '*.cff' -o -name '.clang-*' \
    -o -name .gitignore \) \
    -printf '%s %p\n'
  for folder in engine ops optim models tools tests docs cmake .ci; do
    [[ -d $folder ]] || continue
    find "./$folder" -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.cmake' -o -name '*.in' \
      -o -name '*.txt' -o -name '*.sh' -o -name '*.md' -o -name '*.toml' -o -name '*.json' \
      -o -name '*.js' -o -name '*.mjs' -o -name '*.html' -o -name '*.css' \
      -o -path './.ci/*' \) -not -path '*/golden/*' \
      -printf '%s %p\n'
  done
}

export LC_ALL=C  # lengths are bytes
text_files | sort -k 2 | awk -v limit=600 '
function complain(line, what) {
  printf "%s:%d: %s\n", file, line, what
  failed = 1
}

{ size[++count] = $1; files[count] = substr($0, index($0, " ") + 3) }

END {
  for (f = 1; f <= count; ++f) {
    file = files[f]
    lines = bytes = 0
    while ((getline text < file) > 0) {
      ++lines
      bytes += length(text) + 1
      if (text ~ /[ \t]$/) complain(lines, "trailing whitespace")
      if (text ~ /\t/) complain(lines, "tab; indent with spaces")
      if (text ~ /\r/) complain(lines, "carriage return; lines end with a newline only")
      if (text ~ /TO[D]O|FIX[M]E/) complain(lines, "unfinished work; finish it or write an issue")
    }
    close(file)
    # awk hides whether the last line is terminated, but then the file is one byte short.
    if (bytes != size[f]) complain(lines, "no newline at the end of the file")
    if (file !~ /\.(h|cpp)$/) continue

    if (lines > limit) complain(lines, lines " lines, at most " limit "; split the file by idea")
    folder = file
    sub(/\/[^\/]*$/, "", folder)
    if (!(folder in number)) order[++folders] = folder
    ++number[folder]
    total[folder] += lines
    if (lines > longest[folder]) {
      longest[folder] = lines
      name[folder] = file
      sub(/.*\//, "", name[folder])
    }
  }
  printf "%-22s %5s %6s  %s\n", "folder", "files", "lines", "longest (limit " limit ")"
  for (f = 1; f <= folders; ++f) {
    folder = order[f]
    printf "%-22s %5d %6d  %d %s\n", folder, number[folder], total[folder], longest[folder],
           name[folder]
    part = folder ~ /^tests(\/|$)/ ? "tests" : "without tests"
    all_files[part] += number[folder]
    all_lines[part] += total[folder]
  }
  printf "%-22s %5d %6d\n", "without tests", all_files["without tests"], all_lines["without tests"]
  printf "%-22s %5d %6d\n", "tests", all_files["tests"], all_lines["tests"]
  exit failed
}'
