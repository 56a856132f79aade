"""Calls public functions with odd arguments, 500 times. To be run as a program: whatever happens,
it is an exception of Python that ordinary mistakes raise; a crash of the interpreter is the end of
this process. Prints how many calls succeeded and how many were refused."""

import sys
import warnings

import numpy as np
import tritgrad

ALLOWED = (ValueError, TypeError, OSError, MemoryError, RuntimeError, OverflowError)
draw = np.random.default_rng(int(sys.argv[1]))


def pick(*choices):
    return choices[draw.integers(len(choices))]


def odd_number():
    return pick(0, 1, -1, 2, 3, 2**31, 2**63, -(2**63), 10**30, 0.5, 1e-300, 1e300, float("nan"),
                float("inf"), np.float32(1), np.int8(-3), True, None, "7", "", [], {}, b"x", 1j)


def odd_array(rows):
    if draw.random() < 0.6:
        return draw.normal(size=(rows, 4))
    columns = pick(0, 1, 2, 4, 4, 4)
    X = draw.normal(size=(rows, columns))
    dtype = pick("f4", "f8", "f2", ">f4", ">i8", "u1", "i2", "?", "O", "c8", "U3", "S2", "M8[s]")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = X.astype("i8").astype(dtype) if dtype in ("u1", "?", "M8[s]") else X.astype(dtype)
    if X.size and X.dtype.kind == "f" and draw.random() < 0.2:
        X.flat[draw.integers(X.size)] = pick(np.nan, np.inf, -np.inf, 0.0)
    return pick(X, X, X, X[::2], np.asfortranarray(X), X.T, X.reshape(-1), X[None],
                X.tolist(), None, X[..., None, None], "text", odd_number())


def odd_labels(rows):
    if draw.random() < 0.6:
        return np.arange(rows) % 2
    y = draw.integers(0, pick(1, 2, 3, 50), rows)
    return pick(y, y, y, y.astype("U2"), y.astype(object), y.astype("f4"), y.astype("S1"), -y,
                y[:-1], y.reshape(-1, 1), y.reshape(1, -1), y * 0.3, y.astype(">u2"), y == 0,
                np.where(y == 0, None, y), y.tolist(), None, odd_number())


def odd_spec():
    spec = {"epochs": pick(1, 2), "model": pick("mlp:4", "mlp:3,2", "mlp:", "conv:2,M,2")}
    for _ in range(pick(0, 0, 1, 2)):
        key = pick("epochs", "batch", "val", "lr", "seed", "model", "recipe", "set", "pixels",
                   "label_smoothing", "imbalance", "augment", "micro_batches", "all_rows", "folds",
                   "compute", "data", "resume", "no such key", "ä", 3)
        spec[key] = pick(odd_number(), "votes", "latent8", "mlp:5", ["weight.lr=0.1"], ["x"],
                         "iris")
    if spec.get("epochs") in (2**31, 10**30) or spec.get("data") == "7":
        del spec["epochs"]
    return spec


def stop_soon(point):
    return point.step > pick(3, 30)


def train():
    rows = pick(0, 1, 2, 20, 60)
    spec = {**odd_spec(), **pick({}, {}, {"task": pick("regress", "auto", 3)})}
    return tritgrad.train(spec, odd_array(rows), odd_labels(rows), callback=stop_soon)


def use(model):
    what = pick(model.predict, model.predict_proba, model.values, model.predict_codes)
    what(odd_array(pick(0, 1, 5)))
    if draw.random() < 0.2:
        model.close()
        model.predict(np.zeros((1, 4)))


def read_bytes(model):
    data = bytearray(model.to_bytes())
    for _ in range(draw.integers(0, 4)):
        data[draw.integers(len(data))] = draw.integers(256)
    with tritgrad.Model.from_bytes(bytes(data[: draw.integers(len(data) + 1)])) as other:
        other.values(np.zeros((2, 4)))


def other_calls(model):
    pick(
        lambda: tritgrad.load(pick("none", "", ".", "a\0b", 3, None, b"/")),
        lambda: tritgrad.set_threads(pick(1, 2, odd_number())),
        lambda: tritgrad.Model.from_bytes(pick(b"", b"abc", "text", None, 3)),
        lambda: model.export(pick("", ".", "x.unknown", "/none/m.h", None, "a\0.h"),
                             X=odd_array(3), **pick({}, {"x": 1})),
        lambda: (model.inspect(), model.weights(), tritgrad.recipes()),
        lambda: model.save(pick("", "/none/m", None, ".")),
        lambda: tritgrad.compare(odd_spec(), odd_array(20), odd_labels(20), callback=stop_soon),
    )()


def main():
    X, y = draw.normal(size=(40, 4)), np.arange(40) % 2
    good = tritgrad.train({"epochs": 1, "model": "mlp:4"}, X, y)
    made = refused = 0
    for _ in range(500):
        model = tritgrad.Model.from_bytes(good.to_bytes())
        call = pick(train, train, lambda: use(model), lambda: read_bytes(model),
                    lambda: other_calls(model))
        try:
            call()
            made += 1
        except ALLOWED:
            refused += 1
        except KeyboardInterrupt:  # a comparison that its callback has ended
            refused += 1
    print(made, refused)


warnings.simplefilter("ignore")
main()
