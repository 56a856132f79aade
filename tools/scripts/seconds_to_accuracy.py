"""Processor seconds and memory from the start of a process to an accuracy: tritgrad beside PyTorch.

    bash tools/scripts/seconds_to_accuracy.sh --only mnist

Everybody trains the same network on the same rows, which are the training rows without the tenth
that validates, with smoothed labels and with rates that rise for 3 % of the steps and fall along
half a cosine. The rule is the same for all: after every epoch the validation rows are scored, and
the first epoch at the mark or above is the end. Test rows are scored once, then.

Seconds are user and system time of the whole process on one thread: libraries, data, training, the
validation scores and the one test score. "Start" is what of it a process takes that makes one step
and scores the test rows. PyTorch is the tuned one of bench_vs_torch.py, with channels last where
there are convolutions. tritgrad trains twice, to know the epoch first and then to make the steps up
to it and no more, which are the same as it is deterministic; the second run counts, with the
checkpoints that a run which stops early has to save.

Every round starts each contender once, with a seed of its own, and what is printed are medians
over the rounds, of memory the maximum. Batch and rate of each contender are those of --tune that
reached the mark in the fewest seconds, by validation rows alone and with another seed; all
contenders had as many tries.
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from bench_vs_torch import (check_programs, check_rounds_and_output, cpu_name, environment,
                            fastest_core, separate_cores, show, tuned_torch)

TORCH = [sys.executable, str(pathlib.Path(__file__).resolve().with_name("torch_training.py"))]
VAL = 0.1
GREY = {"pixels": "sqrt", "augment": None, "label_smoothing": 0.1}

# What tritgrad's --model and torch_networks.py call a network, the mark, and by contender (batch,
# rate, epochs): what --tune --rounds 1 chose, but of cifar10 and of digits, which is for the test,
# the recipe's rate and usual ones.
SETS = {
    "mnist": {"mark": 0.985, "model": "mlp:512,512", "network": "784-512-512-10", **GREY,
              "settings": {"latent8": (256, 0.06, 5), "fp32": (256, 4e-3, 5),
                           "ternary QAT": (256, 2e-3, 5)}},
    "fashion-mnist": {"mark": 0.9, "model": "mlp:512,512", "network": "784-512-512-10", **GREY,
                      "settings": {"latent8": (128, 0.03, 5), "fp32": (256, 2e-3, 5),
                                   "ternary QAT": (256, 4e-3, 5)}},
    "cifar10": {"mark": 0.8, "model": "conv:32,32,M,64,64,M,128,128,M",
                "network": "conv:32x32x3-32-32-M-64-64-M-128-128-M-10", "pixels": "linear",
                "augment": {"crop": 4, "flip": True}, "label_smoothing": 0.1,
                "settings": {"latent8": (128, 0.06, 8), "fp32": (128, 2e-3, 8),
                             "ternary QAT": (128, 2e-3, 8)}},
    "digits": {"mark": 0.8, "model": "mlp:64", "network": "64-64-10", "pixels": "linear",
               "augment": None, "label_smoothing": 0.0,
               "settings": {"latent8": (32, 0.06, 8), "fp32": (32, 4e-3, 8),
                            "ternary QAT": (32, 4e-3, 8)}},
}
USUAL = ["mnist", "fashion-mnist", "cifar10"]
# What --tune tries: all batches with all rates.
BATCHES = {"mnist": (128, 256), "fashion-mnist": (128, 256), "cifar10": (128,), "digits": (32,)}
RATES = {"latent8": (0.03, 0.06, 0.12), "fp32": (1e-3, 2e-3, 4e-3),
         "ternary QAT": (1e-3, 2e-3, 4e-3)}
EPOCHS = {"mnist": 5, "fashion-mnist": 5, "cifar10": 8, "digits": 8}
TUNING_SEED = 100  # seeds of rounds are 1, 2, ...; of --tune 101, 102, ...


def stop(sentence):
    print("seconds_to_accuracy: " + sentence, file=sys.stderr)
    sys.exit(2)


# ---- one process ---------------------------------------------------------------------------------


def run_alone(command, more):
    """Runs on one core; returns what it printed and {processor_s, wall_s, peak_rss_bytes}. Linux
    counts the process that starts another to the other's peak; this one is the smaller one."""
    command = ["taskset", "-c", str(separate_cores(1)[0][0])] + command
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as complaints:
        begin = time.perf_counter()
        child = subprocess.Popen(command, env=environment(1, more), stdout=out, stderr=complaints)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        for file in (out, complaints):
            file.seek(0)
        if child.returncode != 0:
            lines = complaints.read().strip().splitlines() or ["exit status %d" % child.returncode]
            stop("{} failed: {}".format(" ".join(command[3:5]), lines[-1]))
        return out.read(), {"processor_s": usage.ru_utime + usage.ru_stime, "wall_s": wall,
                            "peak_rss_bytes": usage.ru_maxrss * 1024}


def epochs_to(mark, curve):
    """How many epochs it took; None where the mark was never reached."""
    return next((i for i, value in enumerate(curve, 1) if value >= mark), None)


def measure_tritgrad(options, name, recipe, settings, seed):
    task, (batch, rate, epochs) = SETS[name], settings
    command = [options.tritgrad, "train", "--data", name, "--model", task["model"],
               "--recipe", recipe, "--batch", str(batch), "--lr", str(rate),
               "--epochs", str(epochs), "--seed", str(seed), "--val", str(VAL),
               "--pixels", task["pixels"], "--label-smoothing", str(task["label_smoothing"]),
               "--threads", "1", "--quiet", "--json", "-"]
    if task["augment"]:
        command += ["--augment", "crop={crop},flip".format(**task["augment"])]
    text, costs = run_alone(command, {})
    whole = json.loads(text)
    curve = [point["val_accuracy"] for point in whole["curve"]]
    reached = epochs_to(task["mark"], curve)
    found = {"reached": reached, "val": curve[:reached], "parameters": whole["parameters"]}
    with tempfile.TemporaryDirectory() as folder:
        command += ["--save", os.path.join(folder, "m.safetensors"), "--stop-after"]
        if reached:
            text, costs = run_alone(command + [str(whole["steps"] // epochs * reached)], {})
        _, start = run_alone(command + ["1"], {})
    return {**found, "test": json.loads(text)["test_accuracy"], **costs,
            "start_s": start["processor_s"]}


def measure_torch(options, name, kind, settings, seed):
    task, (batch, rate, epochs) = SETS[name], settings
    convolves = task["network"].startswith("conv:")
    asked = {"data": name, "folder": options.folder, "model": task["network"], "kind": kind,
             "layout": "channels-last" if convolves else "planes", "pixels": task["pixels"],
             "augment": task["augment"], "label_smoothing": task["label_smoothing"], "batch": batch,
             "lr": rate, "epochs": epochs, "seed": seed, "val": VAL, "mark": task["mark"],
             "steps": None}
    text, costs = run_alone(TORCH + [json.dumps(asked)], tuned_torch(options.core))
    said = json.loads(text)
    _, start = run_alone(TORCH + [json.dumps({**asked, "steps": 1})], tuned_torch(options.core))
    return {"reached": epochs_to(task["mark"], said["val"]), **said, **costs,
            "start_s": start["processor_s"]}


def measure(options, name, contender, settings, seed):
    measure_one = measure_tritgrad if contender == "latent8" else measure_torch
    found = measure_one(options, name, contender, settings, seed)
    return {"seed": seed, **found}


# ---- rounds and tables ---------------------------------------------------------------------------


def measure_all(options, name, candidates):
    """Samples by (contender, settings), all of which are measured in every round."""
    samples = {candidate: [] for candidate in candidates}
    for turn in range(1, options.rounds + 1):
        for contender, settings in candidates:
            show("{}  round {}/{}  {} {}".format(name, turn, options.rounds, contender, settings))
            seed = turn + (TUNING_SEED if options.tune else 0)
            samples[contender, settings].append(measure(options, name, contender, settings, seed))
    show("")
    counts = {sample["parameters"] for found in samples.values() for sample in found}
    if len(counts) != 1:
        stop("{}: the networks have {} parameters; expected the same of all".format(
            name, " and ".join(map(str, sorted(counts)))))
    return samples


def median_of(samples, key):
    return statistics.median(sample[key] for sample in samples)


def summary(samples):
    """Medians over the rounds; seconds are infinite where the mark was not reached."""
    seconds = statistics.median(sample["processor_s"] if sample["reached"] else math.inf
                                for sample in samples)
    return {"processor_s": seconds, "start_s": median_of(samples, "start_s"),
            "wall_s": median_of(samples, "wall_s"),
            "peak_rss_bytes": max(sample["peak_rss_bytes"] for sample in samples),
            "reached": sum(sample["reached"] is not None for sample in samples),
            "epochs": median_of(samples, "reached") if all(s["reached"] for s in samples) else None,
            "val": statistics.median(sample["val"][-1] for sample in samples),
            "test": median_of(samples, "test")}


def name_of(contender):
    return "tritgrad latent8" if contender == "latent8" else "PyTorch " + contender


def ratio(row, first, without="start_s"):
    """Of processor seconds to those of the first contender, without those of `without`."""
    if not math.isfinite(row["processor_s"] + first["processor_s"]):
        return "-"
    seconds, others = (each["processor_s"] - each.get(without, 0.0) for each in (row, first))
    return "{:.1f}".format(seconds / others) if others > 0 else "-"


def print_table(name, found):
    """Of contenders and settings with their summaries; the first is what the others are to."""
    task, first = SETS[name], next(iter(found.values()))
    print("\n{}, {:.1f} % with {}\n".format(name, 100 * task["mark"], task["model"]))
    print("| | batch, rate, epochs planned | epochs made | processor seconds | of it start | ratio "
          "| without start | wall seconds | peak RSS, MiB | validation, % | test, % |")
    print("|" + "---|" * 11)
    for (contender, (batch, rate, epochs)), row in found.items():
        made, seconds = row["epochs"], row["processor_s"]
        cells = [name_of(contender), "{}, {:g}, {}".format(batch, rate, epochs),
                 "{:g}".format(made) if made else "at the mark in {} of {}".format(
                     row["reached"], len(row["samples"])),
                 "{:.2f}".format(seconds) if math.isfinite(seconds) else "-",
                 "{:.2f}".format(row["start_s"]), ratio(row, first, ""), ratio(row, first),
                 "{:.1f}".format(row["wall_s"]), "{:.0f}".format(row["peak_rss_bytes"] / 2**20),
                 "{:.2f}".format(100 * row["val"]), "{:.2f}".format(100 * row["test"])]
        print("| {} |".format(" | ".join(cells)))


def finite_or_none(x):
    return x if math.isfinite(x) else None


def candidates_of(options, name):
    """Pairs of a contender and (batch, rate, epochs): the chosen ones, or all that are tried."""
    chosen = SETS[name]["settings"]
    if not options.tune:
        return list(chosen.items())
    return [(contender, (batch, rate, EPOCHS[name])) for contender in chosen
            for batch, rate in itertools.product(BATCHES[name], RATES[contender])]


def compare(options, name):
    candidates = candidates_of(options, name)
    samples = measure_all(options, name, candidates)
    found = {candidate: {**summary(samples[candidate]), "samples": samples[candidate]}
             for candidate in candidates}
    if options.tune:
        contenders = list(SETS[name]["settings"])
        order = sorted(found, key=lambda each: (contenders.index(each[0]),
                                                found[each]["processor_s"]))
        found = {candidate: found[candidate] for candidate in order}
    print_table(name, found)
    return [{"data": name, "mark": SETS[name]["mark"], "model": SETS[name]["model"],
             "contender": name_of(contender), "batch": batch, "lr": rate, "epochs_planned": epochs,
             **row, "processor_s": finite_or_none(row["processor_s"])}
            for (contender, (batch, rate, epochs)), row in found.items()]


# ---- the command ---------------------------------------------------------------------------------


def data_folder():
    """Where the program has its data sets."""
    caches = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return os.environ.get("TRITGRAD_DATA") or str(pathlib.Path(caches) / "tritgrad")


def fetch_sets(options):
    """Those that are not there yet; notes where they are."""
    options.folder = data_folder()
    missing = [name for name in options.sets
               if name != "digits" and not os.path.isdir(os.path.join(options.folder, name))]
    if missing and subprocess.run([options.tritgrad, "data", "fetch", *missing]).returncode != 0:
        stop("{} cannot be fetched, see above; leave it out with --only".format(
            " and ".join(missing)))


def parse_arguments():
    parser = argparse.ArgumentParser(prog="seconds_to_accuracy.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(USUAL), metavar="NAME,...",
                        help="data sets of {} [{}]".format(", ".join(SETS), ",".join(USUAL)))
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds [3]")
    parser.add_argument("--tune", action="store_true",
                        help="try batches and rates, and print what each of them takes")
    parser.add_argument("--json", metavar="FILE", help="write all samples and medians to FILE")
    parser.add_argument("--tritgrad", default="build/release/tritgrad", metavar="PROGRAM",
                        help="the program to compare [build/release/tritgrad]")
    options = parser.parse_args()
    options.sets = options.only.split(",")
    for name in options.sets:
        if name not in SETS:
            stop("--only: '{}' found, some of {} expected".format(name, ", ".join(SETS)))
    check_rounds_and_output(options)
    return options


def main():
    options = parse_arguments()
    check_programs(options)
    fetch_sets(options)
    # Which kernels OpenBLAS has matters to nobody who only asks for the small set of the test.
    options.core = fastest_core() if options.sets != ["digits"] else None
    version = subprocess.run([options.tritgrad, "--version"], capture_output=True, text=True)
    print("{}, one thread, {} round{}, tritgrad {}".format(
        cpu_name(), options.rounds, "" if options.rounds == 1 else "s", version.stdout.strip()))
    rows = [row for name in options.sets for row in compare(options, name)]
    torch = next(sample for row in rows for sample in row["samples"] if "torch" in sample)
    print("\nPyTorch {}, OpenBLAS's kernels {}".format(torch["torch"], torch["core"]))
    if options.json:
        result = {"cpu": cpu_name(), "command": sys.argv[1:], "tritgrad": version.stdout.strip(),
                  "torch": torch["torch"], "blas": torch["blas"], "blas_kernels": torch["core"],
                  "rounds": options.rounds, "tuning": options.tune, "results": rows}
        pathlib.Path(options.json).write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
