"""Runs the Python of docs/EXPORT_PYTHON.md in a folder with m.npz, m.safetensors, rows.csv and the logits of C in logits.txt.

    numpy_torch.py EXPORT_PYTHON.md page      NumPy and PyTorch, of the page's own network
    numpy_torch.py EXPORT_PYTHON.md logits    NumPy and PyTorch, of perceptrons with batch norm and rectifiers
    numpy_torch.py EXPORT_PYTHON.md classes   PyTorch, of other networks: their classes alone
"""
import json
import re
import sys

import numpy as np

U = 2.0 ** -24  # half a unit in the last place of fp32, of 1


def code_of(page, section):
    """The Python of a section, all of its blocks."""
    text = page.split("\n## " + section + "\n")[1].split("\n## ")[0]
    blocks = re.findall("```python\n(.*?)```", text, re.DOTALL)
    assert blocks, "docs/EXPORT_PYTHON.md has no Python under " + section
    return "\n".join(blocks)


def run_numpy(page):
    names = {}
    exec(compile(code_of(page, "NumPy"), "NumPy", "exec"), names)
    m = names["m"]
    for layer in m["layers"]:
        if layer + ".packed" in m:
            trits = m[layer + ".trits"]
            assert (names["unpacked"](m[layer + ".packed"], trits.shape[1]) == trits).all(), layer
    return names


def run_torch(page, as_it_stands):
    """Where the page's network is another one, the text of the metadata takes its place, as the page says."""
    read, build = code_of(page, "PyTorch").split("import numpy as np\n")
    names = {}
    exec(compile(read, "PyTorch, reading", "exec"), names)
    network = names["about"]["network"]
    line = re.search("^net = (.*)$", build, re.MULTILINE).group(1)
    assert line == network or not as_it_stands, (line, network)
    exec(compile("import numpy as np\n" + build.replace(line, network), "PyTorch", "exec"), names)
    return names


def fill_rows():
    """Where a number of rows.csv is missing (nan), writes the one that stands for it in its place, as both files say."""
    fill = np.load("m.npz").get("input.fill")
    data = open("m.safetensors", "rb").read()
    header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
    said = json.loads(header["__metadata__"].get("input.fill", "null"))
    rows = np.loadtxt("rows.csv", delimiter=",", ndmin=2)
    missing = np.isnan(rows)
    if fill is None:
        assert said is None and not missing.any()
        return
    assert said == fill.tolist() and missing.any(0).all(), (said, fill)
    np.savetxt("rows.csv", np.where(missing, fill, rows), delimiter=",", fmt="%.17g")


def bounds(m, rows):
    """For each logit, by how much two programs may differ that compute in fp32 and add up in any order.

    `e` bounds the difference of two programs in each number of x. Every operation rounds by U times its result at
    most, a sum of n products by n U times the sum of magnitudes, whatever its order; constants below count the
    operations of both programs, rounded up.
    """
    x = np.float32(rows - m["input.offset"]).astype(float)
    mean, inverse_std = m["input.mean"], m["input.inverse_std"]
    e = 8 * U * (abs(x) + abs(mean)) * inverse_std
    x = (x - mean) * inverse_std
    for name in m["layers"]:
        w = m[name + ".weight"].astype(float)
        n = w.shape[1] + 8
        if m[name + ".rounds_inputs"]:
            top, e_top = abs(x).max(1, keepdims=True) + 1e-30, e.max(1, keepdims=True)
            relative = e_top / top
            level = x * (127 / top)
            # How far the levels of the two are apart; where a half lies between, their codes differ.
            apart = 127 / top * (e + abs(x) * relative) * (1 + 2 * relative) + 127 * 8 * U
            codes = np.rint(level)
            flips = np.maximum(np.rint(level + apart) - codes, codes - np.rint(level - apart))
            step = top / 127
            magnitude = step * (1 + relative) * ((abs(codes) + flips) @ abs(w).T)
            e = step * (1 + relative) * (flips @ abs(w).T) + (relative + n * U) * magnitude
            x = step * (codes @ w.T)
        else:
            e = e @ abs(w).T + 2 * n * U * ((abs(x) + e) @ abs(w).T)
            x = x @ w.T
        bias = m[name + ".bias"].astype(float)
        if name == "head":
            return e + 4 * U * (abs(x) + e + abs(bias))
        mean = m[name + ".mean"].astype(float)
        alpha = m[name + ".inverse_std"].astype(float) * m[name + ".gain"]
        e = abs(alpha) * e + 12 * U * ((abs(x) + e + abs(mean)) * abs(alpha) + abs(bias))
        x = np.maximum((x - mean) * alpha + bias, 0)


def main():
    page = open(sys.argv[1], encoding="utf-8").read()
    ours = np.loadtxt("logits.txt", dtype=np.float32, ndmin=2)
    fill_rows()
    torch = run_torch(page, sys.argv[2] == "page")
    rows = np.loadtxt("rows.csv", delimiter=",", ndmin=2)
    assert torch["logits"].shape == ours.shape and len(ours) == len(rows), (torch["logits"].shape, ours.shape)
    assert (torch["logits"].argmax(1) == ours.argmax(1)).all(), "PyTorch takes rows for other classes"
    assert len(set(ours.argmax(1))) > 1, "all rows are of one class: nothing is compared"
    if sys.argv[2] == "classes":
        return
    numpy = run_numpy(page)
    m = numpy["m"]
    assert (numpy["classes"] == m["class_names"][ours.argmax(1)]).all(), "NumPy takes rows for other classes"
    assert (torch["classes"] == numpy["classes"]).all(), "names of classes differ"
    allowed = bounds(m, rows)
    for who, logits in (("NumPy", numpy["logits"]), ("PyTorch", torch["logits"])):
        apart = abs(logits.astype(float) - ours)
        if who == "NumPy" and m["layers.0.rounds_inputs"]:
            assert (apart == 0).all(), "NumPy's logits differ by up to %g" % apart.max()
        most = (apart / allowed).max()
        assert most <= 1, "%s: logits differ by up to %g times the bound" % (who, most)
        print("  %-8s logits differ by %.2g at most; half of the bounds are below %.2g"
              % (who, apart.max(), np.median(allowed)))
    # A bound that lets everything pass would be none: that of half the rows is a thousandth of the logits.
    assert np.median(allowed) < 1e-3 * abs(ours).max(), np.median(allowed)


main()
