"""Runs the commands of README.md, HACKING.md and docs/ in a quick form, as table.py says, and fails on
those that no longer work or that nothing runs. First it plants mistakes in a page and expects to find them.

Usage: run.py TRITGRAD LIBTRITGRAD_C [PAGE...]
"""

import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pages
import table

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 300  # seconds for one command


class Bench:
    """A folder like the repository's, a program, and small data in the places of those that are fetched."""

    def __init__(self, folder, tritgrad, library):
        self.folder, self.tritgrad, self.library = folder, tritgrad, library
        self.home = folder / "home"
        self.helps = {}
        self.seconds = 0
        programs = folder / "programs"
        programs.mkdir()
        (programs / "tritgrad").symlink_to(tritgrad)
        self.environment = {
            **os.environ, "HOME": str(self.home), "XDG_CACHE_HOME": str(self.home / ".cache"),
            "PATH": f"{programs}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
            "OMP_WAIT_POLICY": "passive", "TMPDIR": str(folder),
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.environment.pop("TRITGRAD_DATA", None)
        make_data(self.home / ".cache/tritgrad")

    def run(self, command, place):
        """Returns the end of what a command said if it failed, or None."""
        done = subprocess.run(["bash", "-c", "set -o pipefail; " + command], cwd=place, text=True,
                              env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, errors="replace", timeout=PATIENCE, check=False)
        if done.returncode == 0:
            return None
        said = done.stdout.strip().splitlines()
        return f"exit code {done.returncode}: {' / '.join(said[-3:])}"

    def help_of(self, command):
        """Returns what `tritgrad COMMAND --help` says, or "" where there is no such command."""
        if command not in self.helps:
            done = subprocess.run([self.tritgrad, *command.split(), "--help"], text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self.helps[command] = done.stdout if done.returncode == 0 else ""
        return self.helps[command]

    def commands(self):
        return re.findall(r"(?m)^  ([a-z]+)  ", self.help_of("").split("Subcommands:")[1])

    def place(self, page, text):
        """Makes the folder in which the commands of a page run, with what they take for granted."""
        place = Path(tempfile.mkdtemp(dir=self.folder))
        for part in ("engine", "tests", "models"):
            (place / part).symlink_to(ROOT / part)
        shutil.copytree(ROOT / "tools", place / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        for plan in (place / "tools").glob("*.toml"):
            plan.write_text(quick(plan.read_text(), table.QUICK_PLAN))
        for folder in ("docs", "build"):
            (place / folder).mkdir()
        (place / "build/release").symlink_to(Path(self.tritgrad).parent)
        write_table(place / "table.csv")
        shutil.copy(place / "table.csv", place / "other.csv")
        for name in ("novel.txt", "text.txt"):
            shutil.copy(ROOT / "LICENSE", place / name)
        if page in table.FILES:
            language, name = table.FILES[page]
            code = [code for word, code in pages.blocks(text) if word == language]
            (place / name).write_text(code[0])
        for command in table.BEFORE.get(page, ()):
            failure = self.run("tritgrad " + command, place)
            assert failure is None, f"what {page} takes for granted: {command}: {failure}"
        return place


def write_images(folder, part, rows, random_bytes):
    head = struct.pack(">4sI", b"\0\0\x08\x03", rows) + struct.pack(">II", 28, 28)
    (folder / f"{part}-images-idx3-ubyte").write_bytes(head + random_bytes(rows * 784))
    labels = bytes(row % 10 for row in range(rows))
    (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">4sI", b"\0\0\x08\x01", rows) + labels)


def write_rows(path, rows, columns, classes):
    """A table of numbers with as many rows as the set has, which is looked at when it is read."""
    lines = [",".join(f"x{column}" for column in range(columns)) + ",class"]
    numbers = random.Random(1)
    for row in range(rows):
        digits = numbers.getrandbits(4 * columns)
        lines.append(",".join(str(digits >> 4 * column & 15) for column in range(columns)) + f",c{row % classes}")
    path.write_text("\n".join(lines) + "\n")


def write_table(path):
    lines = ["id,size,colour,diagnosis"]
    lines += [f"{row},{row * 37 % 100 / 10},{'red' if row % 3 else 'blue'},{'bad' if row % 2 else 'good'}"
              for row in range(120)]
    path.write_text("\n".join(lines) + "\n")


def make_data(cache):
    random_bytes = random.Random(1).randbytes
    for name in ("mnist", "fashion-mnist", "cifar10", "letter", "shuttle"):
        (cache / name).mkdir(parents=True)
    for name in ("mnist", "fashion-mnist"):
        write_images(cache / name, "train", 200, random_bytes)
        write_images(cache / name, "t10k", 100, random_bytes)
    for part in [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]:
        records = [bytes([row]) + random_bytes(3072) for row in range(10)]
        (cache / "cifar10" / f"{part}.bin").write_bytes(b"".join(records))
    write_rows(cache / "letter/letter.csv", 20000, 16, 26)
    write_rows(cache / "shuttle/shuttle.csv", 58000, 9, 7)


def quick(text, rules):
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text)
    return text


def check_elsewhere(command):
    """Returns whether a test runs it, and what is wrong with that test."""
    for pattern, file, words in table.ELSEWHERE:
        match = re.fullmatch(pattern, command)
        if match:
            wanted = words.format(*(match.groups() or ("",)))
            if not (ROOT / file).exists():
                return True, f"{file}, which is to run it, is not there"
            if wanted not in re.sub(r"(?m)^ *(#|//).*", "", (ROOT / file).read_text()):
                return True, f"{file}, which is to run it, does not name '{wanted}'"
            return True, None
    return False, None


def check_by_hand(command):
    """Returns whether it is run by hand only, and what is wrong with its text or its options."""
    for pattern in table.BY_HAND:
        match = re.fullmatch(pattern, command)
        if not match:
            continue
        script = ROOT / match[1]
        if not script.exists():
            return True, f"there is no {match[1]}"
        parse = ["node", "--check"] if script.suffix == ".mjs" else ["bash", "-n"]
        if shutil.which(parse[0]):
            done = subprocess.run([*parse, script], stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode != 0:
                return True, done.stderr.strip()
        python = script.with_suffix(".py")
        if python.exists():
            text = python.read_text()
            missing = [option for option in pages.options(command) if f'"{option}"' not in text]
            if missing:
                return True, f"{python.name} has no {missing[0]}"
        return True, None
    return False, None


def check_tests(bench, command):
    """Returns what is wrong with a filter of the unit tests."""
    tests = Path(bench.tritgrad).with_name("tritgrad_tests")
    if not tests.exists():
        return f"there is no {tests}"
    done = subprocess.run(["bash", "-c", f"{tests} {command.split(' ', 1)[1]} --count"], cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, check=False)
    return None if re.search(r": [1-9]", done.stdout) else "no test case has such a name"


def check_known(bench, command):
    """Whether something else runs a command, or it runs tests; and what is wrong with it, or None."""
    for check in (check_elsewhere, check_by_hand):
        known, complaint = check(command)
        if known:
            return True, complaint
    if "tritgrad_tests " in command:
        return True, check_tests(bench, command)
    return False, None


def check_script(bench, command, place):
    """Returns what is wrong with the one command that a script is made for, or None."""
    file, pattern = table.COMMAND_OF_SCRIPT[command]
    match = re.search(pattern, (ROOT / file).read_text())
    if match is None:
        return f"{file} has no command like '{pattern}'"
    return bench.run(quick(match[0].replace("\\\n", " "), table.QUICK), place)


def check_command(bench, command, place):
    """Returns what is wrong with a command of a block, or None."""
    known, complaint = check_known(bench, command)
    if complaint is None and command in table.COMMAND_OF_SCRIPT:
        complaint = check_script(bench, command, place)
    if known:
        return complaint
    if not re.match(table.RUN, command):
        return "no rule of tests/scripts/documents/table.py says how this is tested"
    program = command.split(" ")[0]
    if shutil.which(program, path=bench.environment["PATH"]) is None:
        print(f"skipped: {program} is not installed: {command}")
        return f"{program} is not installed" if os.environ.get("TRITGRAD_READERS") == "required" else None
    return bench.run(quick(command, table.QUICK), place)


def check_mention(bench, command):
    """Returns what is wrong with a command in a sentence, whose arguments may be names of what to write."""
    known, complaint = check_known(bench, command)
    if known:
        return complaint
    words = command[command.find("tritgrad "):].split()
    if words[0] != "tritgrad":
        return "no rule of tests/scripts/documents/table.py says how this is tested"
    if words[1] not in bench.commands():
        return f"there is no command '{words[1]}'"
    known = bench.help_of(words[1])
    wrong = [option for option in pages.options(command) if not re.search(rf"(^|[ ,]){option}[ \n]", known)]
    return f"'tritgrad {words[1]}' has no {wrong[0]}" if wrong else None


def check_options(bench, text):
    """Returns the options in sentences that no command has."""
    known = "".join(bench.help_of(command) for command in bench.commands())
    known += " ".join(table.OTHER_OPTIONS) + " "
    return [f"`{span}`: no command has {option}" for span in pages.spans(text) if span.startswith("--")
            for option in pages.options(span) if not re.search(rf"(^|[ ,]){option}[ \n]", known)]


def check_code(page, text):
    """Returns the blocks of code in other languages that nothing runs."""
    complaints = []
    for language in sorted({word for word, _ in pages.blocks(text) if word not in (None, "sh", "bash")}):
        file, words = table.CODE.get((page, language), ("", ""))
        if not file:
            complaints.append(f"no rule of tests/scripts/documents/table.py says what runs its {language}")
        elif not (ROOT / file).exists() or words.split("/")[-1] not in (ROOT / file).read_text():
            complaints.append(f"{file} does not run its {language}")
    return complaints


def check_c(bench, text):
    """Returns what is wrong with the C of docs/C.md, which is compiled and run."""
    place = Path(tempfile.mkdtemp(dir=bench.folder))
    code = next(code for word, code in pages.blocks(text) if word == "c")
    (place / "program.c").write_text(table.C_PROGRAM.format(code))
    folder = Path(bench.library).parent
    failure = bench.run(f"cc -std=c99 -Wall -Werror program.c -o program -I {ROOT}/tools/c {bench.library} "
                        f"-Wl,-rpath,{folder} && ./program", place)
    if failure is None and not (place / "product.h").exists():
        failure = "it writes no product.h"
    return [f"its C: {failure}"] if failure else []


def check_page(bench, page, text):
    """Returns a sentence for whatever is wrong in a page."""
    complaints = check_code(page, text) + check_options(bench, text)
    if page == "docs/C.md":
        complaints += check_c(bench, text)
    for command in pages.commands_in_sentences(text, table.PROGRAMS):
        complaint = check_mention(bench, command)
        if complaint:
            complaints.append(f"`{command}`: {complaint}")
    commands = pages.commands(text, table.PROGRAMS)
    if commands:
        place = bench.place(page, text)
        for command in commands:
            complaint = check_command(bench, command, place)
            if complaint:
                complaints.append(f"{command}: {complaint}")
    return complaints


MISTAKES = (
    ("    tritgrad train --data iris --epoch 1\n", "--epoch"),
    ("    tritgrad train --data iris --model mlp:4 \\\n      --recipe laten8\n", "laten8"),
    ("    tritgrad eval never_saved\n", "never_saved"),
    ("```\ntritgrad compare --data iris --recipe votes\n```\n", "--recipe"),
    ("    bash tools/scripts/no_such.sh\n", "no rule"),
    ("    build/release/tritgrad_tests -tc='no such test'\n", "no test case"),
    ("    python3 tools/scripts/bench_vs_torch.py\n", "no rule"),
    ("    bash tools/scripts/bench_vs_torch.sh --turns 2\n", "--turns"),
    ("    cmake --preset nightly && cmake --build --preset nightly\n", "does not name"),
    ("Say `tritgrad trian --data iris`.\n", "trian"),
    ("Say `tritgrad train --dta iris`.\n", "--dta"),
    ("With `--label-smoothin 0.1` it is so.\n", "--label-smoothin"),
    ("```java\nint x;\n```\n", "java"),
)


def check_that_mistakes_are_found(bench):
    for text, words in MISTAKES:
        complaints = check_page(bench, "planted.md", text)
        assert len(complaints) == 1 and words in complaints[0], f"planted: {text!r}, found: {complaints}"
    right = "Say `tritgrad eval m`.\n\n    tritgrad train --data iris --model mlp:4 --save m\n    tritgrad eval m   # it\n"
    assert check_page(bench, "planted.md", right) == []
    print(f"documents: {len(MISTAKES)} planted mistakes are found")


def main():
    tritgrad, library, *names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), os.path.realpath(tritgrad), os.path.realpath(library))
        check_that_mistakes_are_found(bench)
        failed = False
        for page in names or [path.relative_to(ROOT) for name in table.PAGES for path in sorted(ROOT.glob(name))]:
            text = (ROOT / page).read_text()
            complaints = check_page(bench, str(page), text)
            print(f"{page}: {len(pages.commands(text, table.PROGRAMS))} commands, "
                  f"{len(pages.commands_in_sentences(text, table.PROGRAMS))} in sentences")
            for complaint in complaints:
                print(f"  FAILED: {complaint}")
            failed = failed or bool(complaints)
    sys.exit(failed)


main()
