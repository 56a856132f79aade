"""What a checkpoint says of itself (docs/FORMATS.md): safetensors, a length of 8 bytes, a header in
JSON of so many bytes, and the arrays."""

import json
from typing import Any, Dict, NamedTuple

import numpy as np


class Header(NamedTuple):
    """What is needed to turn cells of a table into inputs of the model."""

    run: Dict[str, Any]  # "tritgrad.run": options, names and the table of the training
    means: np.ndarray  # float32 [inputs], or [1] of images: what stands for a missing cell


def read(data: memoryview) -> Header:
    """Reads a checkpoint that the library has accepted."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(bytes(data[8:end]))
    begin, stop = header["data/mean"]["data_offsets"]
    means = np.frombuffer(bytes(data[end + begin : end + stop]), dtype="<f4")
    return Header(json.loads(header["__metadata__"]["tritgrad.run"]), means)
