"""Which benchmarks became slower from one build of tritgrad to another.

    python3 tools/scripts/compare_builds.py OLD/tritgrad NEW/tritgrad --only passes,steps --rounds 7
    python3 tools/scripts/compare_builds.py OLD/tritgrad NEW/tritgrad --only steps -- --batch 256

Both programs run `bench --rounds 1 --json -` alternately, so that a disturbance hits both. An entry
is slower when the medians differ by more than the threshold and by more than either program's own
rounds do (half of them lie within the spread). Ceilings are the machine's and accuse no build: where
they differ, the machine was disturbed. Arguments behind -- go to `bench`.

Exit status: 0 nothing is slower, 1 something is, 2 the comparison could not be made.
"""

import argparse
import json
import statistics
import subprocess
import sys

GROUPS = ("ceilings", "passes", "steps")


def stop(sentence):
    print("compare_builds: " + sentence, file=sys.stderr)
    sys.exit(2)


def run_bench(program, arguments):
    command = [program, "bench", "--rounds", "1", "--json", "-"] + arguments
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        stop("'{}' cannot be run: {}".format(program, error.strerror))
    if done.returncode != 0:
        said = (done.stderr.strip() or "exit status %d" % done.returncode).splitlines()[-1]
        hint = "; this build has no 'bench'" if "unknown command 'bench'" in said else ""
        stop("'{}' failed: {}{}".format(" ".join(command), said, hint))
    try:
        result = json.loads(done.stdout)
        return {(group, entry["name"]): (entry["value"], entry["unit"])
                for group in GROUPS for entry in result[group] if entry["value"] is not None}
    except (ValueError, KeyError, TypeError):
        stop("'{}' printed something else than results; is it tritgrad?".format(" ".join(command)))


def spread(values):
    """Width of the middle half of the rounds, as a share of their median."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / statistics.median(values)


def compare(old, new, lower_is_better):
    """(median, median, change, spread, spread); change > 0: slower, 0.1 = takes a tenth longer."""
    before, after = statistics.median(old), statistics.median(new)
    change = (after / before if lower_is_better else before / after) - 1.0
    return before, after, change, spread(old), spread(new)


def verdict(group, change, spreads, threshold):
    if abs(change) <= max(threshold, *spreads):
        return ""
    if group == "ceilings":
        return "machine differs"
    return "slower" if change > 0 else "faster"


def parse_arguments(arguments):
    more = []
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, more = arguments[:cut], arguments[cut + 1:]
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", metavar="OLD", help="the program before the change")
    parser.add_argument("new", metavar="NEW", help="the program after it")
    parser.add_argument("--only", help="groups, as of 'tritgrad bench' [all]")
    parser.add_argument("--rounds", type=int, default=7, help="runs of each program [7]")
    parser.add_argument("--threshold", type=float, default=5.0,
                        help="per cent below which nothing is called slower [5]")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        stop("--rounds {}: expected 1 or more".format(options.rounds))
    if options.threshold < 0:
        stop("--threshold {}: expected 0 or more".format(options.threshold))
    options.more = (["--only", options.only] if options.only else []) + more
    return options


def measure(options):
    """Values by program and entry, and each entry's unit."""
    values, units = ({}, {}), {}
    for turn in range(options.rounds):
        # Whoever runs second may find a warmer machine: they take turns.
        for which in ((0, 1) if turn % 2 == 0 else (1, 0)):
            if sys.stderr.isatty():
                print("\r\033[Kround {}/{}  {}".format(turn + 1, options.rounds,
                                                       ("OLD", "NEW")[which]),
                      end="", file=sys.stderr, flush=True)
            program = (options.old, options.new)[which]
            for key, (value, unit) in run_bench(program, options.more).items():
                values[which].setdefault(key, []).append(value)
                units[key] = unit
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    return values, units


def main():
    options = parse_arguments(sys.argv[1:])
    (old, new), units = measure(options)
    shared = [key for key in old if key in new]
    if not shared:
        stop("the two programs measured nothing in common")
    width = max(len(name) for _, name in shared)
    line = "  {:<%d} {:>10} {:>10} {:<9} {:>7} {:>7} {:>7}  {}" % width
    slower = 0
    for group in GROUPS:
        keys = [key for key in shared if key[0] == group]
        if not keys:
            continue
        print(group)
        print(line.format("", "old", "new", "", "ratio", "spread", "spread", "").rstrip())
        for key in keys:
            before, after, change, *spreads = compare(old[key], new[key], units[key] == "ms")
            word = verdict(group, change, spreads, options.threshold / 100.0)
            slower += word == "slower"
            print(line.format(key[1], "%.4g" % before, "%.4g" % after, units[key],
                              "%.3f" % (after / before), "%.1f%%" % (100 * spreads[0]),
                              "%.1f%%" % (100 * spreads[1]), word).rstrip())
    for which, mine, other in (("OLD", old, new), ("NEW", new, old)):
        for group, name in (key for key in mine if key not in other):
            print("only in {}: {} {}".format(which, group, name))
    print("{} of {} slower by more than {:g} % and the spread of the rounds".format(
        slower, len(shared), options.threshold))
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
