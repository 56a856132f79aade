#!/usr/bin/env python3
"""A reader of tritgrad's checkpoints in plain Python, written from FORMATS.md alone.

    python3 tests/scripts/read_checkpoint.py CHECKPOINT DATA

DATA is a table with a header line and the class last, or a folder of IDX files (then its t10k rows are
read). Prints the share of rows whose class the model says, in doubles. Formats of weights: fp32, bf16,
split24, split32, ternary_master, trits, ternary, shared4 to shared16, latent8 to latent4.
"""
import csv
import itertools
import json
import math
import os
import struct
import sys

CODES = {"B": ("U8", 1), "b": ("I8", 1), "h": ("I16", 2), "f": ("F32", 4), "q": ("I64", 8), "d": ("F64", 8)}
LATENT_BITS = {"latent8": 8, "latent6": 6, "latent5": 5, "latent4": 4}
THRESHOLDS = {8: 42, 6: 10, 5: 5, 4: 2}
FORMATS = ["fp32", "bf16", "split24", "split32", "ternary_master", "trits", "ternary", "shared4", "shared8",
           "shared16"] + list(LATENT_BITS)
BLOCK = 320


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        raw = data[start + begin:start + end]
        if entry["dtype"] == "BF16":  # the upper half of a float
            raw = b"".join(b"\0\0" + raw[i:i + 2] for i in range(0, len(raw), 2))
            tensors[name] = struct.unpack("<%df" % (len(raw) // 4), raw)
            continue
        for code, (dtype, size) in CODES.items():
            if dtype == entry["dtype"]:
                tensors[name] = struct.unpack("<%d%s" % (len(raw) // size, code), raw)
    return tensors, metadata


# ---- matrices --------------------------------------------------------------------------------------


def trits_of_block(packed, n):
    stripe = (n + 4) // 5
    return [packed[i % stripe] // 3 ** (i // stripe) % 3 - 1 for i in range(n)]


def codes_of_block(packed, n, bits):
    half, more = (n + 1) // 2, bits - 4
    stripe = (n * more + 7) // 8
    codes = []
    for i in range(n):
        low = packed[i % half] >> 4 * (i // half) & 15
        high = packed[half + i % stripe] >> more * (i // stripe) & (1 << more) - 1 if more else 0
        codes.append((high << 4 | low) - (1 << bits - 1))
    return codes


def unpack(packed, rows, cols, block_bytes, read_block):
    """Rows begin on bytes and are cut into blocks of 320 elements."""
    matrix, at = [], 0
    for _ in range(rows):
        row = []
        for begin in range(0, cols, BLOCK):
            n = min(BLOCK, cols - begin)
            row += read_block(packed[at:at + block_bytes(n)], n)
            at += block_bytes(n)
        matrix.append(row)
    return matrix


def nearest_trits(codes, bits):
    threshold = THRESHOLDS[bits]
    return [(c > threshold) - (c < -threshold) for c in codes]


def matrix_of(tensors, name, format_name, rows, cols):
    """The matrix [rows][cols] that the layer multiplies with."""
    if format_name not in FORMATS:
        sys.exit("%s: format '%s' is not read here; known: %s" % (name, format_name, ", ".join(FORMATS)))

    def in_rows(plane):
        return [list(plane[r * cols:(r + 1) * cols]) for r in range(rows)]

    if name + "/gamma" in tensors:
        gamma = tensors[name + "/gamma"][0]
        return [[gamma * max(-1, min(1, round(w / gamma))) if gamma else 0.0 for w in row]
                for row in in_rows(tensors[name + "/master"])]
    if name + "/value" in tensors:
        return in_rows(tensors[name + "/value"])
    bits = LATENT_BITS.get(format_name)
    if bits is None:
        trits = unpack(tensors[name + "/trits"], rows, cols, lambda n: (n + 4) // 5, trits_of_block)
    elif bits == 8:
        trits = [nearest_trits(row, 8) for row in in_rows(tensors[name + "/code"])]
    else:
        trits = unpack(tensors[name + "/code"], rows, cols,
                       lambda n: (n + 1) // 2 + (n * (bits - 4) + 7) // 8,
                       lambda packed, n: nearest_trits(codes_of_block(packed, n, bits), bits))
    scales = tensors[name[:-len("weight")] + "scale/master"]
    scales = struct.unpack("<%de" % len(scales), struct.pack("<%de" % len(scales), *scales))
    groups = len(scales) // rows
    width = cols if groups == 1 else 1 << ((cols - 1) // groups).bit_length()
    return [[t * scales[r * groups + i // width] for i, t in enumerate(row)]
            for r, row in enumerate(trits)]


# ---- layers ----------------------------------------------------------------------------------------


def rounded(x):
    """What int8 makes of numbers that are rounded together."""
    scale = max(abs(v) for v in x) / 127
    return [round(v / scale) * scale for v in x] if scale else x


def times(matrix, x):
    return [sum(w * v for w, v in zip(row, x)) for row in matrix]


def pixel(image, h, line, column):
    height, width, channels = image
    inside = 0 <= line < height and 0 <= column < width
    at = (line * width + column) * channels
    return h[at:at + channels] if inside else [0.0] * channels


class Model:
    def __init__(self, path):
        self.tensors, metadata = read_safetensors(path)
        self.run = json.loads(metadata["tritgrad.run"])
        recipe = metadata["tritgrad.recipe"]
        self.format = recipe.split("[weight]")[1].split("format = '")[1].split("'")[0]
        self.int8 = "compute = 'int8'" in recipe
        self.matrices = {}

    def layer(self, name, rows, cols):
        if name not in self.matrices:
            self.matrices[name] = matrix_of(self.tensors, name + ".weight", self.format, rows, cols)
        return self.matrices[name]

    def norm(self, layer, y, kind):
        def plane(name):
            return self.tensors[layer + name + "/value"]

        if kind == "none":
            return [v + b for v, b in zip(y, plane(".bias"))]
        gain = plane(".norm.gain")
        if kind == "rms":
            size = math.sqrt(sum(v * v for v in y) / len(y) + 1e-6)
            return [g * v / size for g, v in zip(gain, y)]
        if kind == "layer":
            middle = sum(y) / len(y)
            mean = [middle] * len(y)
            variance = [sum((v - middle) ** 2 for v in y) / len(y)] * len(y)
        else:
            mean, variance = plane(".norm.running_mean"), plane(".norm.running_var")
        return [g * (v - m) / math.sqrt(s + 1e-5) + b
                for g, v, m, s, b in zip(gain, y, mean, variance, plane(".norm.bias"))]

    def head(self, h):
        matrix = self.layer("head", len(self.run["class_names"]), len(h))
        logits = times(matrix, rounded(h) if self.int8 else h)
        return [v + b for v, b in zip(logits, self.tensors["head.bias/value"])]

    def perceptron(self, h):
        _, widths, *options = self.run["model"].split(":")
        options = dict(option.split("=") for option in options)
        activate = {"relu": lambda v: max(0.0, v), "squared_relu": lambda v: max(0.0, v) ** 2,
                    "tanh": math.tanh}[options.get("activation", "relu")]
        for i, width in enumerate(map(int, widths.split(","))):
            name = "layers.%d" % i
            y = times(self.layer(name, width, len(h)), rounded(h) if self.int8 else h)
            h = [activate(v) for v in self.norm(name, y, options.get("norm", "batch"))]
        return self.head(h)

    def dense(self, name, width, h):
        y = times(self.layer(name, width, len(h)), rounded(h) if self.int8 else h)
        return [max(0.0, v) for v in self.norm(name, y, "batch")]

    def convolution(self, name, image, h, width, stride):
        """The norm of a convolution, and the shape of what that is."""
        height, columns, channels = image
        matrix = self.layer(name, width, 9 * channels)
        h = rounded(h) if self.int8 else h
        lines, places = range(0, height, stride), range(0, columns, stride)
        out = [v for line in lines for column in places
               for v in self.norm(name, times(matrix, [
                   v for i in range(3) for j in range(3)
                   for v in pixel(image, h, line + i - 1, column + j - 1)]), "batch")]
        return out, (len(lines), len(places), width)

    def convolutional(self, h):
        image, names = tuple(self.run["image"]), ("layers.%d" % i for i in itertools.count())
        is_row = False
        for part in self.run["model"].split(":")[1].split(","):
            height, columns, channels = image
            if part == "M":
                h = [max(values)
                     for line in range(0, height - 1, 2) for column in range(0, columns - 1, 2)
                     for values in zip(*(pixel(image, h, line + i, column + j)
                                         for i in range(2) for j in range(2)))]
                image = height // 2, columns // 2, channels
            elif part == "R":
                inner, _ = self.convolution(next(names), image, h, channels, 1)
                inner = [max(0.0, v) for v in inner]
                outer, _ = self.convolution(next(names), image, inner, channels, 1)
                h = [max(0.0, a + b) for a, b in zip(outer, h)]
            elif part[0] == "F":
                h, is_row = self.dense(next(names), int(part[1:]), h), True
            else:
                width, _, stride = part.partition("/")
                h, image = self.convolution(next(names), image, h, int(width), int(stride or 1))
                h = [max(0.0, v) for v in h]
        if is_row:
            return self.head(h)
        height, columns, channels = image
        return self.head([sum(h[c::channels]) / (height * columns) for c in range(channels)])

    def classify(self, x):
        if self.run.get("pixels") == "sqrt":
            x = [math.sqrt(v) for v in x]
        mean, inverse_std = self.tensors["data/mean"], self.tensors["data/inverse_std"]
        if len(mean) == 1:
            mean, inverse_std = mean * len(x), inverse_std * len(x)
        h = [(v - m) * s for v, m, s in zip(x, mean, inverse_std)]
        conv = self.run["model"].startswith("conv:")
        logits = self.convolutional(h) if conv else self.perceptron(h)
        return self.run["class_names"][logits.index(max(logits))]


# ---- data ------------------------------------------------------------------------------------------


def read_rows(path):
    if os.path.isdir(path):
        with open(os.path.join(path, "t10k-images-idx3-ubyte"), "rb") as file:
            images = file.read()[16:]
        with open(os.path.join(path, "t10k-labels-idx1-ubyte"), "rb") as file:
            labels = file.read()[8:]
        size = len(images) // len(labels)
        return [(list(images[i * size:(i + 1) * size]), str(c)) for i, c in enumerate(labels)]
    with open(path) as file:
        return [([float(v) for v in row[:-1]], row[-1]) for row in list(csv.reader(file))[1:]]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    model, rows = Model(sys.argv[1]), read_rows(sys.argv[2])
    features, classes = model.run["inputs"], set(model.run["class_names"])
    if len(rows[0][0]) != features or not {label for _, label in rows} <= classes:
        sys.exit("%s: rows have %d features and %d classes, but the model has %d features and the classes %s"
                 % (sys.argv[2], len(rows[0][0]), len({label for _, label in rows}), features, sorted(classes)))
    print(sum(model.classify(x) == label for x, label in rows) / len(rows))


if __name__ == "__main__":
    main()
