"""Images for tools/scripts/torch_training.py: the rows that tritgrad trains and tests on.

Files are those that 'tritgrad data fetch' leaves in a folder for each set: IDX for mnist and
fashion-mnist, CIFAR-10's binary files; digits is in the repository. Training and validation rows
are parted by the rule of engine/data/split.cpp with its random numbers (Philox4x32-10), so that
both programs are judged by the same rows.
"""

import pathlib

import numpy

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "engine" / "data" / "digits.csv"


def read_images(name, folder):
    """Pixels [n height width + 1, channels] as bytes, of which the last one is 0; the shape
    (height, width, channels) of an image; labels [n]; and which of the n rows test."""
    folder = pathlib.Path(folder) / name
    if name == "digits":
        return read_digits()
    return read_cifar(folder) if name == "cifar10" else read_idx(folder)


def empty_pixels(images, shape):
    return numpy.zeros((images * shape[0] * shape[1] + 1, shape[2]), numpy.uint8)


def read_digits():
    table = numpy.loadtxt(DIGITS, dtype=numpy.uint8, delimiter=",", skiprows=1)
    pixels, labels = empty_pixels(len(table), (8, 8, 1)), table[:, -1].astype(numpy.int64)
    pixels[:-1] = table[:, :-1].reshape(-1, 1)
    _, test = take_fraction(numpy.arange(len(labels)), labels, 0.2, "test")
    return pixels, (8, 8, 1), labels, test


def read_idx(folder):
    """60,000 images to train on and 10,000 tests, behind heads of 16 and of 8 bytes."""
    labels = [numpy.fromfile(folder / (part + "-labels-idx1-ubyte"), numpy.uint8)[8:]
              for part in ("train", "t10k")]
    pixels, size = empty_pixels(sum(map(len, labels)), (28, 28, 1)), 28 * 28
    begin = 0
    for part, own in zip(("train", "t10k"), labels):
        with open(folder / (part + "-images-idx3-ubyte"), "rb") as file:
            file.seek(16)
            file.readinto(memoryview(pixels[begin:begin + size * len(own)]))
        begin += size * len(own)
    labels = numpy.concatenate(labels).astype(numpy.int64)
    return pixels, (28, 28, 1), labels, numpy.arange(len(labels) - len(own), len(labels))


def read_cifar(folder):
    """Six files of 10,000 records: a label, and an image by channels; the last file tests."""
    names = ["data_batch_%d.bin" % i for i in range(1, 6)] + ["test_batch.bin"]
    pixels, labels = empty_pixels(10000 * len(names), (32, 32, 3)), []
    for i, name in enumerate(names):
        records = numpy.fromfile(folder / name, numpy.uint8).reshape(10000, 3073)
        labels.append(records[:, 0].astype(numpy.int64))
        images = pixels[:-1].reshape(-1, 10000, 1024, 3)[i]
        images[:] = records[:, 1:].reshape(-1, 3, 1024).transpose(0, 2, 1)
    labels = numpy.concatenate(labels)
    return pixels, (32, 32, 3), labels, numpy.arange(len(labels) - 10000, len(labels))


def split_rows(labels, test, fraction):
    """Training rows and validation rows, which are so large a part of those that do not test."""
    rest = numpy.setdiff1d(numpy.arange(len(labels)), test)
    return take_fraction(rest, labels, fraction, "validation")


# ---- engine/data/split.cpp -----------------------------------------------------------------------


def take_fraction(rows, labels, fraction, purpose):
    """Rows kept and rows taken, each in increasing order; every class gives its share."""
    classes = [shuffled(rows[labels[rows] == label], label, purpose)
               for label in range(labels.max() + 1)]
    kept, taken = [], []
    for members, count in zip(classes, stratified_counts(classes, fraction, len(rows))):
        taken += members[:count]
        kept += members[count:]
    return numpy.sort(kept), numpy.sort(taken)


def stratified_counts(classes, fraction, total):
    """The whole parts of the shares, and one more where the largest remainders are."""
    shares = [fraction * len(members) for members in classes]
    counts = [int(share) for share in shares]
    remainders = [share - count for share, count in zip(shares, counts)]
    for _ in range(int(fraction * total + 0.5) - sum(counts)):
        largest = remainders.index(max(remainders))
        counts[largest] += 1
        remainders[largest] = -1.0
    return counts


def shuffled(members, step, purpose):
    members = members.tolist()
    bits = random_bits(len(members) + 1, stream_of(purpose), step)
    for i in range(len(members), 1, -1):
        other = int(bits[i]) * i >> 32
        members[i - 1], members[other] = members[other], members[i - 1]
    return members


def stream_of(purpose):
    """FNV-1a, 32 bits."""
    value = 2166136261
    for byte in purpose.encode():
        value = (value ^ byte) * 16777619 % 2**32
    return value


def random_bits(count, stream, step):
    """The first numbers of the key (seed 0, stream, step), 32 bits each."""
    low, blocks = numpy.uint64(2**32 - 1), -(-count // 4)
    c = [numpy.arange(blocks, dtype=numpy.uint64), numpy.zeros(blocks, numpy.uint64),
         numpy.full(blocks, stream, numpy.uint64), numpy.full(blocks, step, numpy.uint64)]
    for turn in range(10):
        k0, k1 = (numpy.uint64(turn * weyl % 2**32) for weyl in (0x9E3779B9, 0xBB67AE85))
        p0, p1 = c[0] * numpy.uint64(0xD2511F53), c[2] * numpy.uint64(0xCD9E8D57)
        c = [p1 >> numpy.uint64(32) ^ c[1] ^ k0, p1 & low, p0 >> numpy.uint64(32) ^ c[3] ^ k1,
             p0 & low]
    return numpy.stack(c, axis=1).reshape(-1)
