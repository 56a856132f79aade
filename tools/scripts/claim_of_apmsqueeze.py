"""APMSqueeze's claim in small: the loss of all-reduced Adam at equal steps, for a part of its bytes.

    python3 tools/scripts/claim_of_apmsqueeze.py build/release/tritgrad

Trains on two ranks of Open MPI, by either method with the same seeds, and prints two tables in
Markdown: scores with the bytes that a rank sends, and the training loss after each epoch.
Everything behind '--' goes to tritgrad train and takes the place of the default,

    --data sotu --model llama:4,256:ff=512 --batch 8 --epochs 10 --epoch-tokens 50000 --threads 1

--set weight.lr=0.001 and the like may stand there too. As root, mpirun wants the variables
OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; more ranks than cores want
--launcher 'mpirun -n 4 --oversubscribe'.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile

DEFAULT = ("--data sotu --model llama:4,256:ff=512 --batch 8 --epochs 10 "
           "--epoch-tokens 50000 --threads 1").split()
METHODS = ("allreduce", "apmsqueeze")
MISSING = "–"


def stop(sentence):
    print("claim_of_apmsqueeze: " + sentence, file=sys.stderr)
    sys.exit(1)


def train(launcher, program, method, seed, arguments):
    """Returns the result of one run, as train --json writes it."""
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        command = launcher.split() + [program, "train"] + arguments + [
            "--dp", method, "--seed", str(seed), "--quiet", "--json", result.name]
        try:
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  text=True, check=False)
        except OSError as error:
            stop(f"'{command[0]}' cannot be started ({error.strerror}); install openmpi-bin, or "
                 "name another launcher by --launcher")
        if done.returncode != 0:
            stop(f"{method}, seed {seed}: {' '.join(command)} ended with exit code "
                 f"{done.returncode}: {done.stderr.strip()}")
        return json.load(open(result.name, encoding="utf-8"))


def score_key(run):
    return "test_" + run.get("metric", "accuracy")


def mean_text(values, digits=3):
    """'2.697 ± 0.014': the mean and the sample deviation."""
    text = f"{statistics.mean(values):.{digits}f}"
    return text + f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else text


def row(cells):
    return "| " + " | ".join(cells) + " |"


def print_scores(runs):
    """Prints a row for each method; differences are those of equal seeds."""
    key = score_key(runs[METHODS[0]][0])
    print(row(["`--dp`", key.replace("_", " "), "difference", "training loss",
               "bytes that a rank sends: a step in the mean", "the last step", "the run"]))
    print("|:---" + "|---:" * 6 + "|")
    base = runs[METHODS[0]]
    for method in METHODS:
        mine = runs[method]
        traffic = mine[0]["traffic"]
        gaps = [a[key] - b[key] for a, b in zip(mine, base)]
        print(row([f"`{method}`", mean_text([run[key] for run in mine]),
                   MISSING if mine is base else mean_text(gaps),
                   mean_text([run["train_loss"] for run in mine]),
                   f"{traffic['bytes_per_step']:,.0f}", f"{traffic['last_step_bytes']:,}",
                   f"{traffic['bytes_per_step'] * mine[0]['steps']:,.0f}"]))
    print()


def print_curves(runs):
    """Prints the mean training loss over the seeds, after the same steps."""
    epochs = [point["epoch"] for point in runs[METHODS[0]][0]["curve"]]
    print(row(["training loss after epoch"] + [f"{epoch:g}" for epoch in epochs]))
    print("|:---" + "|---:" * len(epochs) + "|")
    for method in METHODS:
        losses = [[point["train_loss"] for point in run["curve"]] for run in runs[method]]
        print(row([f"`{method}`"] + [f"{statistics.mean(loss):.3f}" for loss in zip(*losses)]))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="tritgrad, built with MPI")
    parser.add_argument("--launcher", default="mpirun -n 2", help="starts the ranks [%(default)s]")
    parser.add_argument("--recipe", default="fp32-lm", help="of AdamW alone [%(default)s]")
    parser.add_argument("--seeds", type=int, default=3, help="seeds 1..N [%(default)s]")
    parser.add_argument("--warmup", default="0.2", help="--dp-warmup [%(default)s]")
    own = sys.argv[1:]
    split = own.index("--") if "--" in own else len(own)
    options = parser.parse_args(own[:split])
    arguments = (own[split + 1:] or DEFAULT) + ["--recipe", options.recipe]
    runs = {method: [] for method in METHODS}
    for seed in range(1, options.seeds + 1):
        for method in METHODS:
            more = ["--dp-warmup", options.warmup] if method == "apmsqueeze" else []
            run = train(options.launcher, options.program, method, seed, arguments + more)
            runs[method].append(run)
            print(f"{method}, seed {seed}: {score_key(run)} {run[score_key(run)]:.4f}, "
                  f"{run['seconds']:.0f} s", file=sys.stderr)
    print_scores(runs)
    print_curves(runs)


if __name__ == "__main__":
    main()
