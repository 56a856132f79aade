"""Whole training steps of the same networks: tritgrad beside PyTorch.

    bash tools/scripts/bench_vs_torch.sh --quick

    bash tools/scripts/bench_vs_torch.sh --model conv:32x32x3-32-32-M-64-64-M-128-128-M-10

    bash tools/scripts/bench_vs_torch.sh --model llama:4,256:ff=512:context=128 --batch 8

Networks are perceptrons, named by their widths, convolutional networks, or transformers, which read
random bytes in windows of so many; of those the table has tokens a second. PyTorch's convolutions
go through oneDNN, with the numbers of a channel beside each other (planes) or those of a pixel
("channels-last").

Every round starts every contender once, in a process of its own on the same cores, so that a
disturbance hits all alike; a process makes a few steps that do not count and reports the median of
the others. What is printed are medians over the rounds.

PyTorch is measured as it comes ("default", glibc's malloc) and as fast as we can make it ("tuned",
jemalloc with huge pages that are never given back, and those of OpenBLAS's kernels that multiply
matrices fastest here: of processors that are younger than itself it may know so little that it
takes kernels from before AVX). OpenBLAS is the one with OpenMP, whose threads are torch's own; the
one with pthreads would compete with them. Variables that would hold it back are removed. "avx2" is
what a processor without AVX-512 would run, on both sides.

    fp32          AdamW (foreach) on fp32
    bf16          weights, activations and moments in bfloat16
    ternary QAT   fp32 master weights, absmean ternary in the forward pass, straight-through
    BitLinear     the same, with activations rounded to 8 bits by rows, as BitNet b1.58 does
"""

import argparse
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys

from convolution_text import parse_convolutional
from transformer_text import parse_transformer

OPENBLAS = "/usr/lib/{}-linux-gnu/openblas-openmp".format(platform.machine())
JEMALLOC = "/usr/lib/{}-linux-gnu/libjemalloc.so.2".format(platform.machine())
TUNED_MALLOC = "thp:always,dirty_decay_ms:-1,muzzy_decay_ms:-1"
HOLD_BACK = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_VERBOSE", "ATEN_CPU_CAPABILITY",
             "LD_PRELOAD", "MALLOC_CONF", "TRITGRAD_ISA", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY",
             "OMP_PLACES", "OMP_DYNAMIC", "OMP_THREAD_LIMIT", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT",
             "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
AVX2_ONLY = {"OPENBLAS_CORETYPE": "Haswell", "ATEN_CPU_CAPABILITY": "avx2",
             "DNNL_MAX_CPU_ISA": "AVX2"}
# Of OpenBLAS's names those of kernels for x86-64 since AVX2; none: its own choice.
CORES = (None, "Haswell", "Zen", "SkylakeX", "Cooperlake", "Sapphirerapids")
SMALL, LARGE = "784-1024-1024-10", "784-4096-4096-10"
PERCEPTRON_BATCHES, CONVOLUTIONAL_BATCHES, TRANSFORMER_BATCHES = [256, 64], [128], [8]
TORCH = [sys.executable, str(pathlib.Path(__file__).resolve().with_name("torch_step.py"))]


# ---- contenders ----------------------------------------------------------------------------------


def stop(sentence):
    print("bench_vs_torch: " + sentence, file=sys.stderr)
    sys.exit(2)


def show(status):
    """On a terminal, what is going on, in place of what was."""
    if sys.stderr.isatty():
        print("\r\033[K" + status, end="", file=sys.stderr, flush=True)


def environment(threads, more):
    values = {key: value for key, value in os.environ.items() if key not in HOLD_BACK}
    values["OMP_NUM_THREADS"] = values["OPENBLAS_NUM_THREADS"] = str(threads)
    values.update(more)
    return values


def run(command, cores, env):
    """What the command printed, as JSON; or None and the last line of its complaint."""
    command = ["taskset", "-c", ",".join(map(str, cores))] + command
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=1800)
    except subprocess.TimeoutExpired:
        return None, "no result after half an hour"
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["exit status %d" % done.returncode]
        return None, lines[-1]
    return json.loads(done.stdout), ""


def tuned_torch(core):
    """What makes PyTorch as fast as we can; `core` is what fastest_core() says."""
    more = {"LD_LIBRARY_PATH": OPENBLAS, "LD_PRELOAD": JEMALLOC, "MALLOC_CONF": TUNED_MALLOC}
    if core:
        more.update(OPENBLAS_CORETYPE=core)
    return more


class Torch:
    def __init__(self, kind, tuned, avx2=False, layout="planes"):
        self.kind, self.tuned, self.avx2, self.layout = kind, tuned, avx2, layout
        self.name = "torch {}{} {}{}".format(
            kind, "" if layout == "planes" else " " + layout, "tuned" if tuned else "default",
            " avx2" if avx2 else "")

    def measure(self, options, model, batch, threads, cores):
        more = tuned_torch(options.core) if self.tuned else {"LD_LIBRARY_PATH": OPENBLAS}
        if self.avx2:
            more.update(AVX2_ONLY)
        command = TORCH + ["step", self.kind, self.layout, model, str(batch), str(threads)]
        return run(command, cores, environment(threads, more))


class Tritgrad:
    def __init__(self, name, recipe, isa=None):
        self.name, self.recipe, self.isa = name, recipe, isa

    def measure(self, options, model, batch, threads, cores):
        name = model if ":" in model else "mlp:" + model
        command = [options.tritgrad, "bench", "--only", "steps", "--model", name,
                   "--recipe", self.recipe, "--batch", str(batch), "--threads", str(threads),
                   "--rounds", "3", "--json", "-"]
        more = {"TRITGRAD_ISA": self.isa} if self.isa else {}
        result, complaint = run(command, cores, environment(threads, more))
        if result is None:
            return None, complaint
        step = result["steps"][0]
        return {"ms": step["value"], "peak_rss_bytes": result["peak_rss_bytes"],
                "isa": result["isa"], "share": step["share"]}, ""


def recipe(model, name):
    return name + "-lm" if parse_transformer(model) else name


def base(model):
    """The contender that all others are compared with."""
    return "tritgrad " + recipe(model, "latent8")


def contenders(model, batch):
    kinds = ["fp32", "bf16", "ternary QAT"]
    has_images = parse_convolutional(model) is not None
    if batch >= 256 and ":" not in model:
        kinds.append("BitLinear")
    torch = [Torch(kind, tuned) for kind in kinds for tuned in (False, True)]
    if has_images:
        torch += [Torch(kind, True, layout="channels-last") for kind in kinds]
    layout = "channels-last" if has_images else "planes"
    latent8, fp32 = recipe(model, "latent8"), recipe(model, "fp32")
    ours = [Tritgrad(base(model), latent8), Tritgrad(base(model) + " avx2", latent8, "avx2"),
            Tritgrad("tritgrad " + fp32, fp32)]
    if has_images:
        ours.insert(2, Tritgrad("tritgrad master", "master"))
    return torch + [Torch("fp32", True, avx2=True, layout=layout)] + ours


def fastest_core():
    """The name to give OpenBLAS, or none where its own choice stands: where other names mean the same
    kernels, or kernels that are not faster by more than a twentieth, which may be chance."""
    samples, used = {}, {}
    for turn in range(1, 4):
        for core in CORES:
            if core and used.get(core) == used.get(None):
                continue
            show("round {}/3  kernels of OpenBLAS  {}".format(turn, core or "its own choice"))
            more = {"LD_LIBRARY_PATH": OPENBLAS}
            if core:
                more.update(OPENBLAS_CORETYPE=core)
            result, _ = run(TORCH + ["multiply"], separate_cores(1)[0], environment(1, more))
            if result is not None:  # a processor without AVX-512 ends the process
                samples.setdefault(core, []).append(result["seconds"])
                used[core] = result["core"]
    show("")
    if None not in samples:
        return None
    seconds = {core: statistics.median(values) for core, values in samples.items()
               if core is None or used[core] != used[None]}
    fastest = min(seconds, key=seconds.get)
    return fastest if seconds[fastest] < 0.95 * seconds[None] else None


def separate_cores(count):
    """The first processors that this process may use and that share no core, if there are enough."""
    allowed = sorted(os.sched_getaffinity(0))
    chosen, seen = [], set()
    for cpu in allowed:
        path = pathlib.Path("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list" % cpu)
        siblings = path.read_text().strip() if path.exists() else str(cpu)
        if siblings not in seen:
            seen.add(siblings)
            chosen.append(cpu)
    if len(chosen) >= count:
        return chosen[:count], True
    return allowed[:count], False


# ---- rounds and tables ---------------------------------------------------------------------------


def measure_all(options, settings):
    """Samples by (setting, contender), and complaints of those that failed."""
    samples, complaints = {}, {}
    for turn in range(1, options.rounds + 1):
        for setting in settings:
            model, batch, threads = setting
            for contender in contenders(model, batch):
                key = setting + (contender.name,)
                if key in complaints:
                    continue
                show("round {}/{}  {}  batch {}  {} threads  {}".format(
                    turn, options.rounds, model, batch, threads, contender.name))
                cores, _ = separate_cores(threads)
                result, complaint = contender.measure(options, model, batch, threads, cores)
                if result is None:
                    complaints[key] = complaint
                    samples.pop(key, None)
                else:
                    check_blas(result)
                    samples.setdefault(key, []).append(result)
    show("")
    return samples, complaints


def check_blas(result):
    """The comparison is worthless if torch got another BLAS."""
    libraries = result.get("blas")
    if libraries is not None and not any("openblas" in library for library in libraries):
        stop("torch did not load OpenBLAS but {}; is libopenblas0-openmp installed?".format(
            ", ".join(libraries) or "no BLAS that is a library of its own"))


def medians(samples):
    return {key: {"ms": statistics.median(each["ms"] for each in values),
                  "peak_rss_bytes": max(each["peak_rss_bytes"] for each in values)}
            for key, values in samples.items()}


def tokens_per_second(model, batch, ms):
    """None for perceptrons."""
    spec = parse_transformer(model)
    return 1e3 * batch * spec["context"] / ms if spec else None


def print_table(setting, middle, complaints):
    model, batch, threads = setting
    is_text = parse_transformer(model) is not None
    print("\n{}, batch {}, {} thread{}".format(model, batch, threads, "" if threads == 1 else "s"))
    print("  {:<38} {:>10} {:>10} {:>14}{}".format(
        "", "ms/step", "ratio", "peak RSS, MiB", "   tokens/s" if is_text else ""))
    reference = middle.get(setting + (base(model),))
    for contender in contenders(model, batch):
        key = setting + (contender.name,)
        if key in complaints:
            print("  {:<38} {}".format(contender.name, complaints[key]))
            continue
        ms = middle[key]["ms"]
        ratio = "{:.2f}".format(ms / reference["ms"]) if reference else "-"
        tokens = " {:>10.0f}".format(tokens_per_second(model, batch, ms)) if is_text else ""
        print("  {:<38} {:>10.2f} {:>10} {:>14.0f}{}".format(
            contender.name, ms, ratio, middle[key]["peak_rss_bytes"] / 2**20, tokens))


def ratios(settings, middle):
    """(what, setting, ratio): above 1, tritgrad (or two threads) is faster."""
    result = []

    def add(what, setting, slower, faster):
        if slower in middle and faster in middle:
            result.append({"what": what, "model": setting[0], "batch": setting[1],
                           "threads": setting[2],
                           "ratio": middle[slower]["ms"] / middle[faster]["ms"]})

    for setting in settings:
        model, batch, threads = setting
        ours = setting + (base(model),)
        ours_avx2 = setting + (base(model) + " avx2",)
        for kind in ("fp32", "ternary QAT", "BitLinear", "bf16"):
            for layout in ("", " channels-last"):
                tuned = kind + layout + " tuned"
                add("vs " + tuned, setting, setting + ("torch " + tuned,), ours)
        for other in ("fp32 tuned", "fp32 tuned avx2", "fp32 channels-last tuned",
                      "fp32 channels-last tuned avx2"):
            add("avx2 vs " + other, setting, setting + ("torch " + other,), ours_avx2)
        if threads == 2:
            add("two threads vs one", setting, (model, batch, 1, base(model)), ours)
    return result


def print_ratios(found):
    print("\nratios (above 1: tritgrad latent8 or latent8-lm, or the second thread, is faster)")
    for what in dict.fromkeys(each["what"] for each in found):
        print("  " + what)
        for each in found:
            if each["what"] == what:
                print("    {:<18} batch {:<4} {} thread{}  {:.2f}".format(
                    each["model"], each["batch"], each["threads"],
                    " " if each["threads"] == 1 else "s", each["ratio"]))


def cpu_name():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def check_rounds_and_output(options):
    """Ends where measurements would be none, or could not be written."""
    if options.rounds < 1:
        stop("--rounds {}: expected 1 or more".format(options.rounds))
    if options.json:
        try:
            open(options.json, "a").close()
        except OSError as error:
            stop("--json {}: {}".format(options.json, error.strerror))


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="bench_vs_torch.sh", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds [3]")
    parser.add_argument("--quick", action="store_true", help="one round, the small network only")
    parser.add_argument("--model", action="append", metavar="NAME",
                        help="network, may be repeated [{} and {}]".format(SMALL, LARGE))
    parser.add_argument("--batch", metavar="N,...",
                        help="rows [256,64], images [128], or windows of a text [8]")
    parser.add_argument("--threads", default="1,2", help="numbers of threads [1,2]")
    parser.add_argument("--json", metavar="FILE", help="write all samples and medians to FILE")
    parser.add_argument("--tritgrad", default="build/release/tritgrad", metavar="PROGRAM",
                        help="the program to compare [build/release/tritgrad]")
    options = parser.parse_args()
    if options.rounds is None:
        options.rounds = 1 if options.quick else 3
    check_rounds_and_output(options)
    return options


def numbers_of(option, text):
    """The numbers in the value of an option, as they stand there."""
    words = text.split(",")
    if not all(word.isdigit() and int(word) > 0 for word in words):
        stop("{} '{}': expected positive numbers with commas, such as 1,2".format(option, text))
    return [int(word) for word in words]


def networks_of(options):
    """Pairs of a model and a batch."""
    models = options.model or ([SMALL] if options.quick else [SMALL, LARGE])
    pairs = []
    for model in models:
        try:
            usual = (TRANSFORMER_BATCHES if parse_transformer(model) else
                     CONVOLUTIONAL_BATCHES if parse_convolutional(model) else PERCEPTRON_BATCHES)
        except ValueError as error:
            stop("--model: {}".format(error))
        if usual is PERCEPTRON_BATCHES and not re.fullmatch(r"\d+(-\d+)+", model):
            stop("--model '{}': expected the widths of a perceptron, such as {}, a convolutional "
                 "network, such as conv:32x32x3-32-M-64-M-10, or a transformer, such as "
                 "llama:4,256".format(model, SMALL))
        batches = numbers_of("--batch", options.batch) if options.batch else usual
        pairs += [(model, batch) for batch in batches]
    return pairs


def threads_of(options):
    threads = sorted(set(numbers_of("--threads", options.threads)))
    available = len(os.sched_getaffinity(0))
    for count in threads:
        if count > available:
            print("{} threads: left out, this process may use {} processor{}".format(
                count, available, "" if available == 1 else "s"))
        elif not separate_cores(count)[1]:
            print("{} threads: they share a core, there are no more".format(count))
    return [count for count in threads if count <= available]


def check_programs(options):
    for path, package in ((OPENBLAS + "/libblas.so.3", "libopenblas0-openmp"),
                          (JEMALLOC, "libjemalloc2")):
        if not os.path.exists(path):
            stop("there is no {}; install {}, or run 'bash tools/scripts/bench_vs_torch.sh', which "
                 "does".format(path, package))
    if not os.access(options.tritgrad, os.X_OK):
        stop("there is no program '{}'; build it or name another with --tritgrad".format(
            options.tritgrad))
    options.tritgrad = os.path.abspath(options.tritgrad)


def main():
    options = parse_arguments()
    networks, threads = networks_of(options), threads_of(options)
    check_programs(options)
    options.core = fastest_core()
    settings = [network + (count,) for network in networks for count in threads]
    samples, complaints = measure_all(options, settings)
    blas = sorted({library for values in samples.values() for each in values
                   for library in each.get("blas", [])})
    versions = {each["torch"] for values in samples.values() for each in values if "torch" in each}
    cores = {tuned: sorted({each["core"] for key, values in samples.items() for each in values
                            if each.get("core") and "avx2" not in key[-1]
                            and ("tuned" in key[-1]) == tuned})
             for tuned in (False, True)}
    isas = {each["isa"] for key, values in samples.items() for each in values
            if key[-1] == base(key[0])}
    print("{}\ntorch {}, BLAS {}, kernels: default {}, tuned {}\ntritgrad {} kernels\n"
          "{} round{}, medians; ratio: to tritgrad latent8 or latent8-lm".format(
        cpu_name(), ", ".join(versions) or "-", ", ".join(blas) or "-",
        ", ".join(cores[False]) or "-", ", ".join(cores[True]) or "-", ", ".join(isas) or "-",
        options.rounds, "" if options.rounds == 1 else "s"))
    middle = medians(samples)
    for setting in settings:
        print_table(setting, middle, complaints)
    found = ratios(settings, middle)
    print_ratios(found)
    if options.json:
        rows = [{"model": key[0], "batch": key[1], "threads": key[2], "contender": key[3],
                 **middle[key],
                 "tokens_per_s": tokens_per_second(key[0], key[1], middle[key]["ms"]),
                 "samples_ms": [each["ms"] for each in samples[key]]}
                for key in samples]
        failed = [{"model": key[0], "batch": key[1], "threads": key[2], "contender": key[3],
                   "error": complaint} for key, complaint in complaints.items()]
        result = {"cpu": cpu_name(), "torch": sorted(versions), "blas": blas,
                  "blas_kernels": {"default": cores[False], "tuned": cores[True]},
                  "rounds": options.rounds, "steps": rows, "failed": failed, "ratios": found}
        pathlib.Path(options.json).write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
