"""What a run costs from Python: seconds beside those of the command line, and equal weights.

    tritgrad data fetch mnist
    /usr/bin/python3 tools/scripts/python_overhead.py --epochs 20 --rounds 3

MNIST's training images as arrays, all rows of them, on the same model, recipe and seed:

    program   `tritgrad train --data x.npy,y.npy --all-rows`: the whole process
    fit       TernaryClassifier.fit(X, y): the call, and the whole process with its imports
    train     tritgrad.train(options, X, y): the same

Every round starts each of them once, one after the other, so that a disturbance hits all alike.
What is printed are medians over the rounds. Program and library are those of one build folder.

Exit status: 0 all weights are equal, 1 some differ, 2 the measurement could not be made.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
CONTENDERS = ("program", "fit", "train")


def stop(sentence):
    print("python_overhead: " + sentence, file=sys.stderr)
    sys.exit(2)


# ---- what is measured --------------------------------------------------------------------------


def from_python(contender, folder, options):
    """Trains once in this process; prints the seconds of the call and the hash of the weights."""
    import tritgrad

    X, y = np.load(folder / "x.npy"), np.load(folder / "y.npy")
    if contender == "fit":
        widths = [int(width) for width in options.hidden.split(",")]
        estimator = tritgrad.TernaryClassifier(
            options.recipe, hidden=widths, epochs=options.epochs, random_state=1
        )
        begin = time.perf_counter()
        result = estimator.fit(X, y).model_.result
    else:
        spec = {"model": f"mlp:{options.hidden}", "recipe": options.recipe,
                "epochs": options.epochs, "seed": 1, "all_rows": True}
        begin = time.perf_counter()
        result = tritgrad.train(spec, X, y).result
    seconds = time.perf_counter() - begin
    print(json.dumps({"call": seconds, "weights_sha256": result["weights_sha256"]}))


def command_of(contender, folder, options):
    if contender != "program":
        return [sys.executable, __file__, "--measure", contender, str(folder), "--hidden",
                options.hidden, "--recipe", options.recipe, "--epochs", str(options.epochs)]
    return [str(options.build / "tritgrad"), "train", "--data",
            f"{folder / 'x.npy'},{folder / 'y.npy'}", "--model", f"mlp:{options.hidden}",
            "--recipe", options.recipe, "--epochs", str(options.epochs), "--seed", "1",
            "--all-rows", "--quiet", "--json", "-"]


def measure(contender, folder, options):
    """Runs one contender; returns its hash, the seconds of its call and those of its process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools/python"),
                   "TRITGRAD_LIBRARY": str(options.build / "libtritgrad_c.so")}
    begin = time.perf_counter()
    done = subprocess.run(command_of(contender, folder, options), env=environment,
                          capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    if done.returncode:
        stop(f"{contender} failed: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    return found["weights_sha256"], found.get("call", seconds), seconds


# ---- data, and the table -----------------------------------------------------------------------


def read_idx(path):
    """Reads bytes of the format of MNIST: two zeros, 8, the number of axes, their lengths."""
    try:
        data = path.read_bytes()
    except OSError as error:
        stop(f"{error}; fetch it first: tritgrad data fetch mnist")
    axes = data[3]
    extents = np.frombuffer(data, ">i4", axes, 4)
    return np.frombuffer(data, "u1", offset=4 + 4 * axes).reshape(extents)


def write_arrays(options, folder):
    X = read_idx(options.data / "train-images-idx3-ubyte")
    y = read_idx(options.data / "train-labels-idx1-ubyte")
    np.save(folder / "x.npy", X.reshape(len(X), -1))
    np.save(folder / "y.npy", y.astype("i8"))


def print_table(rounds):
    """Prints medians beside the program's; returns whether all weights are equal."""
    program = statistics.median(each["program"][2] for each in rounds)
    print(f"{'':8} {'call':>9} {'':>8} {'process':>9}")
    for contender in CONTENDERS:
        call = statistics.median(each[contender][1] for each in rounds)
        process = statistics.median(each[contender][2] for each in rounds)
        print(f"{contender:8} {call:8.2f}s {100 * (call / program - 1):+7.1f}% {process:8.2f}s "
              f"{100 * (process / program - 1):+7.1f}%")
    hashes = {each[contender][0] for each in rounds for contender in CONTENDERS}
    print(f"weights {'are equal' if len(hashes) == 1 else 'DIFFER'}: {' '.join(sorted(hashes))}")
    return len(hashes) == 1


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cache = os.environ.get("TRITGRAD_DATA", Path.home() / ".cache/tritgrad")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release", help="folder")
    parser.add_argument("--data", type=Path, default=Path(cache) / "mnist", help="folder")
    parser.add_argument("--hidden", default="512,512", help="widths of layers")
    parser.add_argument("--recipe", default="latent8")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)  # one run, in this process
    options = parser.parse_args()
    options.build = options.build.resolve()
    return options


def main():
    options = parse_arguments()
    if options.measure:
        return from_python(options.measure[0], Path(options.measure[1]), options)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_arrays(options, folder)
        rounds = [
            {contender: measure(contender, folder, options) for contender in CONTENDERS}
            for _ in range(options.rounds)
        ]
    sys.exit(0 if print_table(rounds) else 1)


main()
